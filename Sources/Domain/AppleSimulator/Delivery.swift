package import HTTPClient

/// What became of one notification, copy by copy.
package struct Delivery: Sendable {
  /// One POST.
  package enum Attempt: Sendable, Hashable {
    /// The receiver answered with this status.
    case answered(Int)
    /// No answer came.
    case failed(HTTPClientError.Code)
  }

  /// What was delivered.
  package let notification: SignedNotification
  /// All attempts in their order. Each copy's last one is its outcome.
  package internal(set) var attempts: [Attempt] = []
  /// How many copies were answered with 200.
  package internal(set) var received = 0
}
