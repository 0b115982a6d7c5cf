/// A length of time as people say it.
package enum TimeSpan {
  private static let units: [(length: Int64, name: String)] = [
    (86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"),
  ]

  /// Such as `340 ms`, `4.2 s`, `3 min 20 s` or `12 d 4 h`.
  package static func words(_ milliseconds: Int64) -> String {
    if milliseconds < 1000 { return "\(max(0, milliseconds)) ms" }
    if milliseconds < 60_000 {
      let tenths = milliseconds / 100
      return tenths % 10 == 0 ? "\(tenths / 10) s" : "\(tenths / 10).\(tenths % 10) s"
    }
    for (place, unit) in units.enumerated() where milliseconds >= unit.length {
      let (whole, rest) = milliseconds.quotientAndRemainder(dividingBy: unit.length)
      guard place + 1 < units.count else { return "\(whole) \(unit.name)" }
      let smaller = rest / units[place + 1].length
      return smaller == 0 ? "\(whole) \(unit.name)" : "\(whole) \(unit.name) \(smaller) \(units[place + 1].name)"
    }
    return "\(milliseconds) ms"
  }
}
