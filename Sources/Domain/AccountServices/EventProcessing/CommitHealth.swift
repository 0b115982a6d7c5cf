import EventLoop

/// Whether what a consumer commits is taken. A few failures mean nothing: commits fail whenever a group forms anew.
struct CommitHealth {
  /// For how long they have to fail before somebody is told.
  static let patience = Duration.seconds(60)

  /// When the first commit failed since one succeeded; nil where none has.
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

  /// One has succeeded, or there is none to make. True where it was said that they fail.
  mutating func recover() -> Bool {
    defer { self = CommitHealth() }
    return isSaid
  }
}
