import AccountEvents

/// Which of Apple's keys stand on `Topic.signingKeys` already, as far as this process knows.
///
/// A key belongs there before anything that it verified is answered: who keeps the events can then verify them again,
/// long after Apple has replaced the key. A restart publishes it once more, which compaction makes one again.
struct SigningKeyRecords: ~Copyable {
  /// Apple has a handful of keys, and replaces them in months: this is more than any process will see.
  private static let maximumCount = 64

  private var published: [AppleSigningKey] = []

  /// The record to publish before whatever the key verified; nil where it stands there.
  func record(of key: AppleSigningKey) -> EventRecord? {
    for known in published where known.isSame(as: key) { return nil }
    return EventRecord(key)
  }

  /// Notes that the key's record is where it cannot get lost any more.
  mutating func notePublished(_ key: AppleSigningKey) {
    guard !published.contains(where: { $0.isSame(as: key) }) else { return }
    if published.count == Self.maximumCount { published.removeFirst() }
    published.append(key)
  }
}
