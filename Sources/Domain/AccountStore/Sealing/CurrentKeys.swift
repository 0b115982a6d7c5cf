import Synchronization

/// The keys of a store, as this process knows them by now: another one may replace the hashing key at any time.
final class CurrentKeys: Sendable {
  private let keys: Mutex<StoreKeys>

  init(_ keys: StoreKeys) { self.keys = Mutex(keys) }

  /// The keys that were known last.
  var value: StoreKeys { keys.withLock { $0 } }

  /// Others hold from now on.
  func replace(with newer: StoreKeys) { keys.withLock { $0 = newer } }
}
