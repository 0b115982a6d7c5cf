/// Why a target has not erased an account.
package struct ErasureFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// What happened, from a closed list: the label of a metric and the key of a log line.
  package enum Code: String, Sendable, CaseIterable {
    /// It cannot be reached, or did not answer in time.
    case unavailable
    /// It was not asked, because it has not answered of late or wants to be left alone for a while.
    case paused
    /// It answered that it cannot now.
    case notNow = "not-now"
    /// It answered that it never will, or in a way that is not agreed.
    case refused
    /// Its answer is not signed with the agreed secret.
    case unsigned
    /// It was erased, and something is still there.
    case remaining
    /// What the operator declared does not fit the target: a statement, an address, a topic's policy.
    case misconfigured
  }

  /// What happened.
  package let code: Code
  /// More about it; no personal data.
  package let detail: String
  /// How long the target wants to be left alone, by all; nil where it has not said.
  package let retryAfter: Duration?

  /// A failure with its reason.
  package init(_ code: Code, _ detail: String, retryAfter: Duration? = nil) {
    (self.code, self.detail, self.retryAfter) = (code, detail, retryAfter)
  }

  /// The code and the detail.
  package var description: String { "\(code.rawValue): \(detail)" }

  /// Whether it tells of the target as a whole rather than of one account or one answer.
  var isOfTarget: Bool { code == .unavailable || retryAfter != nil }
}
