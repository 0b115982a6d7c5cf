/// Marks in a ring of places, each with a time, and a table that finds them: open addressing, at two thirds of its slots.
///
/// All of it is allocated at the beginning, 26 bytes a place: no insertion ever has to wait until a table is made anew.
struct MarkRing {
  typealias Mark = AcceptedEvents.Mark

  private var marks: [Mark]
  private var times: [UInt32]
  /// The place of a mark, counted from 1, in or behind the slot where the mark belongs; 0 in a free slot.
  private var slots: [UInt32]
  /// How many marks there are.
  private(set) var count = 0

  /// An empty ring with so many places, at most 2³² - 1.
  init(places: Int) {
    marks = Array(repeating: .none, count: places)
    times = Array(repeating: 0, count: places)
    slots = Array(repeating: 0, count: places + (places + 1) / 2)
  }

  var places: Int { marks.count }

  /// The time of a mark; nil where it is not there.
  func seconds(of mark: Mark) -> UInt32? { slot(of: mark).place.map { times[$0] } }

  /// Puts a mark into a place, and forgets what was there. A mark that is in another place leaves that one.
  mutating func insert(_ mark: Mark, at seconds: UInt32, in place: Int) {
    if marks[place] != .none { remove(marks[place]) }
    if mark == .none { return }
    let (slot, old) = slot(of: mark)
    if let old { marks[old] = .none } else { count += 1 }
    slots[slot] = UInt32(place + 1)
    (marks[place], times[place]) = (mark, seconds)
  }

  /// The slot that has the mark, with its place, or the free one where it is to be put.
  private func slot(of mark: Mark) -> (Int, place: Int?) {
    var slot = home(of: mark)
    while slots[slot] != 0 {
      let place = Int(slots[slot]) - 1
      if marks[place] == mark { return (slot, place) }
      slot = next(slot)
    }
    return (slot, nil)
  }

  private mutating func remove(_ mark: Mark) {
    let (slot, place) = slot(of: mark)
    guard let place else { return }
    marks[place] = .none
    count -= 1
    // What is behind it and belongs to it or before moves up, so that no search ends too early.
    var (gap, probe) = (slot, next(slot))
    while slots[probe] != 0 {
      let way = distance(from: home(of: marks[Int(slots[probe]) - 1]), to: probe)
      if way >= distance(from: gap, to: probe) {
        slots[gap] = slots[probe]
        gap = probe
      }
      probe = next(probe)
    }
    slots[gap] = 0
  }

  /// Where a mark belongs. Marks are hashes: their first bits spread them over all slots.
  private func home(of mark: Mark) -> Int { Int(mark.high.multipliedFullWidth(by: UInt64(slots.count)).high) }

  private func next(_ slot: Int) -> Int { slot + 1 == slots.count ? 0 : slot + 1 }

  private func distance(from first: Int, to second: Int) -> Int {
    second >= first ? second - first : second - first + slots.count
  }
}
