import AccountEvents
import Testing

@Suite struct TimestampTests {
  /// From `date -u -d @SECONDS +%FT%T`.
  static let moments: [(Int64, String)] = [
    (0, "1970-01-01T00:00:00.000Z"),
    (951_782_399_999, "2000-02-28T23:59:59.999Z"),
    (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    (951_868_800_000, "2000-03-01T00:00:00.000Z"),
    (1_657_617_063_012, "2022-07-12T09:11:03.012Z"),
    (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
    (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
    (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
  ]

  @Test(arguments: moments)
  func writesRFC3339(_ milliseconds: Int64, _ text: String) {
    #expect(Timestamp(milliseconds: milliseconds)?.description == text)
  }

  @Test(arguments: moments)
  func readsRFC3339(_ milliseconds: Int64, _ text: String) {
    #expect(Timestamp(rfc3339: text)?.milliseconds == milliseconds)
  }

  @Test(arguments: [-1, 253_402_300_800_000, .min, .max])
  func refusesWhatLiesOutsideTheYears(_ milliseconds: Int64) {
    #expect(Timestamp(milliseconds: milliseconds) == nil)
    #expect(Timestamp(seconds: milliseconds) == nil)
  }

  @Test func calculatesWithoutOverflow() throws {
    let first = try #require(Timestamp(milliseconds: 0))
    let last = try #require(Timestamp(milliseconds: 253_402_300_799_999))
    #expect(first + .milliseconds(1500) == Timestamp(milliseconds: 1500))
    #expect(first - .seconds(1) == first)
    #expect(last + .seconds(Int64.max) == last)
    #expect(last - .seconds(Int64.max) == first)
    #expect(last - first == .milliseconds(253_402_300_799_999))
    #expect(first - last == .milliseconds(-253_402_300_799_999))
    #expect(first < last)
  }
}
