package import AccountEvents

/// Data that a law wants kept: it is named instead of erased, and until when.
package final class Retention: ErasureTarget {
  private let ground: String
  private let until: String

  /// What stays for `ground`, such as `§ 147 AO`, `until` a date.
  package init(ground: String, until: String) { (self.ground, self.until) = (ground, until) }

  /// The ground and the day.
  package nonisolated var words: String { "\(ground), until \(until)" }

  /// Nobody counts what stays.
  package func count(_ order: ErasureOrder) async throws(ErasureFailure) -> Int? { nil }

  /// Says what stays, and why.
  package func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    ErasureResult(.retained, affected: nil, found: nil, detail: "\(order.account.team) \(words)")
  }

  /// There is nothing to be asked.
  package func check() async throws(ErasureFailure) {}
}

/// What was recorded of data that stays.
package struct RetentionNote: Sendable, Hashable {
  /// The team of the account; nil where it was not recorded.
  package let team: TeamID?
  /// The ground, such as `§ 147 AO`.
  package let ground: String
  /// The day until which it stays, in ISO 8601's form.
  package let until: String

  /// Reads the detail of a retained step.
  package init(_ detail: String) {
    let words = detail.split(separator: " ", maxSplits: 1)
    team = words.count == 2 ? TeamID(String(words[0])) : nil
    let rest = team == nil ? detail[...] : words[1]
    until = String(rest.suffix(10))
    ground = rest.hasSuffix(", until \(until)") ? String(rest.dropLast(until.count + 8)) : String(rest)
  }
}
