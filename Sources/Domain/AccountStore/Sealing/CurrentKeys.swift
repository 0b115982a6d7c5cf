import Synchronization

/// The keys of a store, as this process knows them by now: another one may replace the hashing key at any time.
final class CurrentKeys: Sendable {
  private let keys: Mutex<StoreKeys>

  init(_ keys: StoreKeys) { self.keys = Mutex(keys) }

  /// The keys that were known last.
  var value: StoreKeys { keys.withLock { $0 } }

  /// Others hold from now on.
  func replace(with newer: StoreKeys) { keys.withLock { $0 = newer } }

  /// Others hold as of some moment: a reader that was slow does not take back what a writer has found out since.
  func advance(to found: StoreKeys) {
    keys.withLock { if found.hashing.generation >= $0.hashing.generation { $0 = found } }
  }
}
