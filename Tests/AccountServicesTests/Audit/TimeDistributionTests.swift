import AccountServices
import TestSupport
import Testing

/// How long things took, in counts.
@Suite struct TimeDistributionTests {
  @Test func nothingHasNoQuantile() {
    let times = TimeDistribution()
    #expect(times.quantile(perMille: 500) == nil && times.count == 0 && times.maximum == 0 && times.lengths.isEmpty)
  }

  @Test func shortLengthsAreExact() {
    var times = TimeDistribution()
    for length in 1...100 as ClosedRange<Int64> { times.add(length) }
    #expect([1, 500, 900, 990, 1000].map { times.quantile(perMille: $0) } == [1, 50, 90, 99, 100])
    #expect(times.count == 100 && times.maximum == 100)
  }

  @Test func whatSeemsToEndBeforeItBeginsTookNoTime() {
    var times = TimeDistribution()
    for length: Int64 in [-5, .min, 0] { times.add(length) }
    #expect(times.quantile(perMille: 1000) == 0 && times.count == 3)
  }

  @Test func whatTakesLongerThanAnybodyWaitsIsCounted() {
    var times = TimeDistribution()
    for length: Int64 in [.max, 1 << 40, 1 << 41] { times.add(length) }
    #expect(times.maximum == 1 << 40 && times.quantile(perMille: 500) == 1 << 40 && times.lengths.count == 1)
  }

  /// Against all lengths in their order, from milliseconds to years.
  @Test(arguments: 0..<20) func quantilesAreTrueToOnePercent(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var (times, lengths) = (TimeDistribution(), [Int64]())
    for _ in 0..<Int.random(in: 1...3000, using: &random) {
      let length = Int64.random(in: 0...(1 << Int64.random(in: 0...39, using: &random)), using: &random)
      lengths.append(length)
      times.add(length)
    }
    lengths.sort()
    for share in [1, 10, 333, 500, 900, 990, 999, 1000] {
      let exact = lengths[(lengths.count * share + 999) / 1000 - 1]
      let said = times.quantile(perMille: share) ?? -1
      #expect(exact...(exact + exact / 100) ~= said, "\(share): \(exact), \(said)")
    }
    #expect(times.lengths.reduce(0) { $0 + $1.count } == UInt64(lengths.count))
    for (range, count) in times.lengths { #expect(lengths.count { range.contains($0) } == Int(count)) }
  }

  @Test func twoTogetherAreAsOne() {
    var (one, other, both) = (TimeDistribution(), TimeDistribution(), TimeDistribution())
    for length: Int64 in [3, 500, 70_000] {
      one.add(length)
      other.add(length * 1000)
      both.add(length)
      both.add(length * 1000)
    }
    one.add(other)
    #expect(one == both)
  }
}
