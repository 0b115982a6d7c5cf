import EventLoop

/// A sender that waits for what becomes of its record. To be answered once.
struct Sender: Sendable {
  /// Tells it.
  let answer: @Loop (DeliveryResult) -> Void
}
