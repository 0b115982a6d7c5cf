import EventLoop

/// A sender that waits for what becomes of its record. To be answered once.
@safe struct Sender {
  private let continuation: UnsafeContinuation<DeliveryResult, Never>

  /// Suspends the calling task until the sender that `register` was given is answered.
  @Loop
  static func wait(_ register: (Sender) -> Void) async -> DeliveryResult {
    await unsafe withUnsafeContinuation { unsafe register(Sender(continuation: $0)) }
  }

  func answer(_ result: DeliveryResult) { unsafe continuation.resume(returning: result) }
}
