package import HTTPClient

/// What became of one notification, copy by copy.
package struct Delivery: Sendable {
  /// One POST.
  package enum Attempt: Sendable, Hashable, CustomStringConvertible {
    /// The receiver answered with this status.
    case answered(Int)
    /// No answer came.
    case failed(HTTPClientError.Code)

    /// The status, or why there is none.
    package var description: String {
      switch self {
      case .answered(let status): "\(status)"
      case .failed(let code): code.rawValue
      }
    }
  }

  /// What was delivered.
  package let notification: SignedNotification
  /// All attempts in their order. Each copy's last one is its outcome.
  package internal(set) var attempts: [Attempt] = []
  /// How many copies were answered with 200.
  package internal(set) var received = 0
}
