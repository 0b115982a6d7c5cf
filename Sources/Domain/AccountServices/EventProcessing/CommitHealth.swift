import EventLoop

/// Whether the group takes what a consumer commits. One failure is none: commits fail whenever a group forms anew.
struct CommitHealth {
  /// For how long they have to fail before somebody is told.
  static let patience = Duration.seconds(60)

  /// When the first failed of those behind which none has succeeded; nil where none has failed.
  private(set) var failingSince: MonotonicTime?
  private var isSaid = false

  /// One has failed. True where that is to be said: once, until one succeeds.
  mutating func fail(at now: MonotonicTime) -> Bool {
    let since = failingSince ?? now
    failingSince = since
    guard !isSaid, now - since >= Self.patience else { return false }
    isSaid = true
    return true
  }

  /// One has succeeded, or there is nothing to commit. True where it was said that they fail.
  mutating func recover() -> Bool {
    defer { self = CommitHealth() }
    return isSaid
  }
}
