package import HTTPClient

/// How notifications are brought to their receiver: Apple's way, and what goes wrong on it.
package struct DeliveryPlan: Sendable {
  /// The URL that the developer registered with Apple.
  package var receiver: HTTPClientURL
  /// How often a notification is tried until it is answered with 200. Apple's own number is unknown.
  package var attempts: Int
  /// The pause after the first failed attempt; it doubles with each further one. Apple's own is unknown.
  package var pause: Duration
  /// How long an answer may take.
  package var deadline: Duration
  /// How often each notification is delivered, each time until 200: more than once makes duplicates.
  package var copies = 1
  /// How long each notification is held back before its first attempt.
  package var delay = Duration.zero
  /// Whether several notifications go out in the reverse of the order in which they happened.
  package var reversesOrder = false

  /// A plan by which nothing goes wrong.
  package init(receiver: HTTPClientURL, attempts: Int, pause: Duration, deadline: Duration) {
    precondition(attempts > 0, "a delivery without an attempt")
    (self.receiver, self.attempts, self.pause, self.deadline) = (receiver, attempts, pause, deadline)
  }
}
