import TestSupport
import Testing

@testable import AccountServices

@Suite struct MarkRingTests {
  /// Marks of few kinds, so that all of them lie in each other's way, against a dictionary.
  @Test(arguments: [1, 2, 7, 64]) func knowsWhatADictionaryKnows(places: Int) {
    var random = SeededRandom()
    for _ in SeededRandom.rounds(20) {
      var ring = MarkRing(places: places)
      var known: [AcceptedEvents.Mark: (place: Int, time: UInt32)] = [:]
      for step in 0..<500 {
        let highs: [UInt64] = [0, 1, .max, .max - 1, .random(in: 0 ... .max, using: &random)]
        let mark = AcceptedEvents.Mark(
          high: highs.randomElement(using: &random) ?? 0, low: .random(in: 0...UInt64(places), using: &random))
        let place = Int.random(in: 0..<places, using: &random)
        known = known.filter { $0.value.place != place }
        if mark != .none { known[mark] = (place, UInt32(step)) }
        ring.insert(mark, at: UInt32(step), in: place)
        #expect(ring.count == known.count, "seed \(random.seed)")
        #expect(ring.seconds(of: mark) == known[mark]?.time, "seed \(random.seed)")
      }
      for (mark, entry) in known { #expect(ring.seconds(of: mark) == entry.time, "seed \(random.seed)") }
    }
  }
}
