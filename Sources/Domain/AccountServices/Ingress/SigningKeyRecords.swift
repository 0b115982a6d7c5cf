import AccountEvents
import EventLoop

/// Which of Apple's keys stand on `Topic.signingKeys` already, as far as this process knows.
///
/// A key belongs there before anything that it verified is answered: who keeps the events can then verify them again,
/// long after Apple has replaced the key. A restart publishes it once more, which compaction makes one again.
@Loop
final class SigningKeyRecords {
  /// Apple has a handful of keys, and replaces them in months: this is more than any process will see.
  private static let maximumCount = 64

  private typealias Outcome = Result<Void, EventLogError>

  private var published: [AppleSigningKey] = []
  /// The keys whose records are on their way, with those who wait for them.
  private var underWay: [(key: AppleSigningKey, waiters: [CheckedContinuation<Outcome?, Never>])] = []

  /// Whether the key's record is where it cannot get lost any more, so that `ensure` need not be called.
  func hasPublished(_ key: AppleSigningKey) -> Bool { published.contains { $0.isSame(as: key) } }

  /// Returns once the key's record is where it cannot get lost any more. `publish` takes it there: once for all who need
  /// it at the same time, because the records of one key would go one after the other.
  func ensure(
    _ key: AppleSigningKey, by publish: @Loop (EventRecord) async throws(EventLogError) -> Void
  ) async throws(EventLogError) {
    if hasPublished(key) { return }
    if underWay.contains(where: { $0.key.isSame(as: key) }) {
      let outcome: Outcome? = await withCheckedContinuation { waiter in
        // A task that does not prefer the loop's executor has given way since it looked.
        guard let index = underWay.firstIndex(where: { $0.key.isSame(as: key) }) else {
          return waiter.resume(returning: nil)
        }
        underWay[index].waiters.append(waiter)
      }
      if let outcome { return try outcome.get() }
      return try await ensure(key, by: publish)
    }
    underWay.append((key, []))
    let outcome: Outcome
    do throws(EventLogError) {
      try await publish(EventRecord(key))
      note(key)
      outcome = .success(())
    } catch {
      outcome = .failure(error)
    }
    if let index = underWay.firstIndex(where: { $0.key.isSame(as: key) }) {
      for waiter in underWay.remove(at: index).waiters { waiter.resume(returning: outcome) }
    }
    try outcome.get()
  }

  private func note(_ key: AppleSigningKey) {
    if published.count == Self.maximumCount { published.removeFirst() }
    published.append(key)
  }
}
