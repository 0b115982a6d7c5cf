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

  /// From `date -u -d TEXT +%s`.
  @Test(
    arguments: [
      ("2026-05-03", 1_777_766_400_000), ("2026-05-03T10:00:00Z", 1_777_802_400_000),
      ("2026-05-03T10:00Z", 1_777_802_400_000), ("2026-05-03t12:00:00+02:00", 1_777_802_400_000),
      ("2026-05-03T04:30:00.5-05:30", 1_777_802_400_500), ("2024-02-29", 1_709_164_800_000),
      ("2026-05-03T10:00:00.123456789z", 1_777_802_400_123), ("1970-01-01T01:00:00+01:00", 0),
    ] as [(String, Int64)])
  func readsTheOtherFormsOfRFC3339(_ text: String, _ milliseconds: Int64) {
    #expect(Timestamp(rfc3339: text)?.milliseconds == milliseconds)
  }

  @Test(
    arguments: [
      "", "2026", "2026-05", "2026-5-3", "2026-13-01", "2026-02-29", "1900-02-29", "2026-04-31", "2026-05-00",
      "2026-05-03T", "2026-05-03T10", "2026-05-03T10:00", "2026-05-03T24:00:00Z", "2026-05-03T10:60:00Z",
      "2026-05-03T10:00:60Z", "2026-05-03T10:00:00", "2026-05-03T10:00:00.Z", "2026-05-03T10:00:00+0200",
      "2026-05-03T10:00:00+24:00", "2026-05-03 10:00:00Z", "2026-05-03T10:00:00Z ", "+2026-05-03", "2026-05-03Z",
      "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "２０２６-05-03",
    ])
  func refusesWhatIsNoMoment(_ text: String) { #expect(Timestamp(rfc3339: text) == nil) }

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
