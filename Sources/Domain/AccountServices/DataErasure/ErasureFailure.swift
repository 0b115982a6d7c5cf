/// Why a target has not erased an account.
package struct ErasureFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// What happened, from a closed list: the label of a metric and the key of a log line.
  package enum Code: String, Sendable, CaseIterable {
    /// It cannot be reached, or did not answer in time.
    case unavailable
    /// It answered that it cannot now.
    case notNow = "not-now"
    /// It answered that it never will, or in a way that is not agreed.
    case refused
    /// Its answer is not signed with the agreed secret.
    case unsigned
    /// It was erased, and something is still there.
    case remaining
    /// What the operator declared does not fit the target: a statement, an address.
    case misconfigured
  }

  /// What happened.
  package let code: Code
  /// More about it; no personal data.
  package let detail: String

  /// A failure with its reason.
  package init(_ code: Code, _ detail: String) { (self.code, self.detail) = (code, detail) }

  /// The code and the detail.
  package var description: String { "\(code.rawValue): \(detail)" }
}
