extension RFC3339 {
  /// The milliseconds since 1970 of a moment as people and programs write it: `2026-01-31T23:59:59.123Z`, with an offset
  /// (`+02:00`) in place of `Z`, without seconds or their fraction; or a day alone, which is its beginning in UTC.
  ///
  /// Nil for anything else. What is finer than a millisecond is dropped.
  public static func milliseconds(of text: String) -> Int64? {
    var rest = Array(text.utf8)[...]
    guard let year = number(4, &rest), take("-", &rest), let month = number(2, &rest), take("-", &rest),
      let day = number(2, &rest), 1...12 ~= month, 1...days(of: month, in: year) ~= day
    else { return nil }
    let midnight = Int64(daysSince1970(year, month, day)) * 86_400_000
    if rest.isEmpty { return midnight }
    guard take("T", &rest) || take("t", &rest), let hour = number(2, &rest), take(":", &rest),
      let minute = number(2, &rest), hour < 24, minute < 60
    else { return nil }
    var milliseconds = midnight + Int64(hour * 60 + minute) * 60_000
    if take(":", &rest) {
      guard let second = number(2, &rest), second < 60 else { return nil }
      milliseconds += Int64(second) * 1000
      if take(".", &rest) {
        guard let fraction = fraction(&rest) else { return nil }
        milliseconds += Int64(fraction)
      }
    }
    guard let offset = offset(&rest), rest.isEmpty else { return nil }
    return milliseconds - Int64(offset) * 60_000
  }

  /// The offset from UTC in minutes.
  private static func offset(_ rest: inout ArraySlice<UInt8>) -> Int? {
    if take("Z", &rest) || take("z", &rest) { return 0 }
    let sign = take("+", &rest) ? 1 : take("-", &rest) ? -1 : 0
    guard sign != 0, let hours = number(2, &rest), take(":", &rest), let minutes = number(2, &rest), hours < 24,
      minutes < 60
    else { return nil }
    return sign * (hours * 60 + minutes)
  }

  /// The milliseconds of a second's fraction: at least one digit.
  private static func fraction(_ rest: inout ArraySlice<UInt8>) -> Int? {
    let digits = rest.prefix { 0x30...0x39 ~= $0 }
    guard !digits.isEmpty else { return nil }
    rest = rest.dropFirst(digits.count)
    return (digits.prefix(3) + [0x30, 0x30]).prefix(3).reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }

  private static func number(_ count: Int, _ rest: inout ArraySlice<UInt8>) -> Int? {
    let digits = rest.prefix(count)
    guard digits.count == count, digits.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    rest = rest.dropFirst(count)
    return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }

  private static func take(_ mark: Unicode.Scalar, _ rest: inout ArraySlice<UInt8>) -> Bool {
    guard rest.first == UInt8(ascii: mark) else { return false }
    rest = rest.dropFirst()
    return true
  }

  private static func days(of month: Int, in year: Int) -> Int {
    let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
    return month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
  }

  /// The reverse of `date(daysSince1970:)`, counted in the same way.
  private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let shifted = month > 2 ? year : year - 1
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}
