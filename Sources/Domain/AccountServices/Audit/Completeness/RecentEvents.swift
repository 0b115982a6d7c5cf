/// The last events of accounts of which something was said, a few hundred thousand, in the same memory for ever.
struct RecentEvents: Sendable {
  private struct Key: Sendable, Hashable {
    let event: ShortDigest
    let account: UInt64
  }

  /// When so many are young, the old ones are forgotten.
  private static let limit = 1 << 17

  private var young: Set<Key> = []
  private var old: Set<Key> = []

  func contains(_ event: ShortDigest, _ account: UInt64) -> Bool {
    let key = Key(event: event, account: account)
    return young.contains(key) || old.contains(key)
  }

  mutating func insert(_ event: ShortDigest, _ account: UInt64) {
    if young.count >= Self.limit { (old, young) = (young, []) }
    young.insert(Key(event: event, account: account))
  }
}
