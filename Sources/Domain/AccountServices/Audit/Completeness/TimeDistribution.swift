/// How long something took, many times: counts by length, in the same memory however many there are.
///
/// Below 256 milliseconds each length has a count of its own; above, lengths that differ by less than a 128th share one.
package struct TimeDistribution: Sendable, Hashable {
  private static let exact: Int64 = 256
  /// Counts for each doubling beyond `exact`.
  private static let steps: Int64 = 128
  /// 34 years; what took longer counts as this.
  private static let longest: Int64 = 1 << 40

  private var counts: [UInt64] = []
  /// How many there are.
  package private(set) var count: UInt64 = 0
  /// The longest, in milliseconds; 0 where there is none.
  package private(set) var maximum: Int64 = 0

  /// Nothing yet.
  package init() {}

  /// Takes in something that took so many milliseconds. What seems to have ended before it began, by two clocks, took none.
  package mutating func add(_ milliseconds: Int64) {
    let length = min(max(0, milliseconds), Self.longest)
    let place = Self.place(of: length)
    if place >= counts.count { counts += Array(repeating: 0, count: place + 1 - counts.count) }
    counts[place] += 1
    count += 1
    maximum = max(maximum, length)
  }

  /// Takes in all of another one.
  package mutating func add(_ other: TimeDistribution) {
    if other.counts.count > counts.count {
      counts += Array(repeating: 0, count: other.counts.count - counts.count)
    }
    for (place, more) in other.counts.enumerated() { counts[place] += more }
    count += other.count
    maximum = max(maximum, other.maximum)
  }

  /// The length, in milliseconds, that so many of a thousand did not exceed, rounded up by less than 1%; nil where there is
  /// nothing.
  package func quantile(perMille share: Int) -> Int64? {
    precondition(1...1000 ~= share)
    guard count > 0 else { return nil }
    // The nearest rank: the smallest number of lengths that is so many of a thousand.
    let (thousands, rest) = count.quotientAndRemainder(dividingBy: 1000)
    let rank = thousands * UInt64(share) + (rest * UInt64(share) + 999) / 1000
    var seen: UInt64 = 0
    for (place, number) in counts.enumerated() {
      seen += number
      if seen >= rank { return min(Self.lengths(at: place).upperBound, maximum) }
    }
    return maximum
  }

  /// How many took each of these lengths in milliseconds, the shortest first; lengths that nothing took are left out.
  package var lengths: [(milliseconds: ClosedRange<Int64>, count: UInt64)] {
    counts.enumerated().filter { $0.element > 0 }.map { (Self.lengths(at: $0.offset), $0.element) }
  }

  private static func place(of length: Int64) -> Int {
    guard length >= exact else { return Int(length) }
    // So many bits are dropped that as many stay as number the steps of a doubling.
    let shift = 63 - length.leadingZeroBitCount - steps.trailingZeroBitCount
    return Int(exact + Int64(shift - 1) * steps + (length >> Int64(shift)) - steps)
  }

  private static func lengths(at place: Int) -> ClosedRange<Int64> {
    guard place >= exact else { return Int64(place)...Int64(place) }
    let (doubling, step) = (Int64(place) - exact).quotientAndRemainder(dividingBy: steps)
    let first = (steps + step) << (doubling + 1)
    return first...first + 1 << (doubling + 1) - 1
  }
}
