package import AccountEvents
package import EventLoop

/// What time it is for whoever asks Apple about many, and how one waits.
package struct AskingClock: Sendable {
  let wall: @Sendable () -> Timestamp
  let now: @Loop @Sendable () -> MonotonicTime
  let sleep: @Loop @Sendable (MonotonicTime) async throws -> Void

  /// A clock from its parts; `sleep` returns at that moment, or throws once its task is cancelled.
  package init(
    wall: @escaping @Sendable () -> Timestamp, now: @escaping @Loop @Sendable () -> MonotonicTime,
    sleep: @escaping @Loop @Sendable (MonotonicTime) async throws -> Void
  ) { (self.wall, self.now, self.sleep) = (wall, now, sleep) }

  /// The system's.
  package static let system = AskingClock(
    wall: { .now }, now: { .now }, sleep: { try await Loop.sleep(until: $0) })
}
