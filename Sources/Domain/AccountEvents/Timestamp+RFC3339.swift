extension Timestamp {
  /// The 24 bytes of `2022-07-12T09:11:03.012Z`.
  var rfc3339: [UInt8] {
    let (year, month, day) = date
    let time = Int(milliseconds % 86_400_000)
    var text: [UInt8] = []
    text.reserveCapacity(24)
    func append(_ number: Int, digits: Int, then separator: Unicode.Scalar) {
      var unit = 1
      for _ in 1..<digits { unit *= 10 }
      while unit > 0 {
        text.append(UInt8(truncatingIfNeeded: 0x30 + number / unit % 10))
        unit /= 10
      }
      text.append(UInt8(ascii: separator))
    }
    append(year, digits: 4, then: "-")
    append(month, digits: 2, then: "-")
    append(day, digits: 2, then: "T")
    append(time / 3_600_000, digits: 2, then: ":")
    append(time / 60_000 % 60, digits: 2, then: ":")
    append(time / 1000 % 60, digits: 2, then: ".")
    append(time % 1000, digits: 3, then: "Z")
    return text
  }

  /// Year, month and day, by Howard Hinnant's algorithm (`civil_from_days`): years begin in March, so that the leap day
  /// is a year's last.
  private var date: (year: Int, month: Int, day: Int) {
    let days = Int(milliseconds / 86_400_000) + 719_468  // since 0000-03-01
    let dayOfEra = days % 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153  // 0 is March
    let day = dayOfYear - (153 * month + 2) / 5 + 1
    let year = yearOfEra + days / 146_097 * 400
    return month < 10 ? (year, month + 3, day) : (year + 1, month - 9, day)
  }
}
