/// Moments as log lines and records show them.
public enum RFC3339 {
  /// Appends `2026-01-31T23:59:59.123Z`. Years outside of 0000 to 9999 become the nearest moment inside.
  public static func append(_ milliseconds: Int64, to bytes: inout [UInt8]) {
    let bounded = min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999)
    let days = Int(bounded - (bounded < 0 ? 86_399_999 : 0)) / 86_400_000
    let rest = Int(bounded) - days * 86_400_000
    let (year, month, day) = date(daysSince1970: days)
    var text: InlineArray<24, UInt8> = [
      0x30, 0x30, 0x30, 0x30, UInt8(ascii: "-"), 0x30, 0x30, UInt8(ascii: "-"), 0x30, 0x30, UInt8(ascii: "T"),
      0x30, 0x30, UInt8(ascii: ":"), 0x30, 0x30, UInt8(ascii: ":"), 0x30, 0x30, UInt8(ascii: "."),
      0x30, 0x30, 0x30, UInt8(ascii: "Z"),
    ]
    func put(_ number: Int, _ place: Int) {
      text[place] += UInt8(truncatingIfNeeded: number / 10)
      text[place + 1] += UInt8(truncatingIfNeeded: number % 10)
    }
    put(year / 100, 0)
    put(year % 100, 2)
    put(month, 5)
    put(day, 8)
    put(rest / 3_600_000, 11)
    put(rest / 60_000 % 60, 14)
    put(rest / 1000 % 60, 17)
    text[20] += UInt8(truncatingIfNeeded: rest % 1000 / 100)
    put(rest % 100, 21)
    unsafe text.span.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
  }

  /// The proleptic Gregorian date; the year is taken to begin in March, so that the leap day is its last one.
  private static func date(daysSince1970 days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468  // 0000-03-01
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
  }
}
