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
  package func count(_ account: Account) async throws(ErasureFailure) -> Int? { nil }

  /// Says what stays, and why.
  package func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    ErasureResult(.retained, affected: nil, found: nil, detail: words)
  }

  /// There is nothing to be asked.
  package func check() async throws(ErasureFailure) {}
}
