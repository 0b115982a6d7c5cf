import EventLoop
import SQLite

/// Changes that share a commit: the disk is synced once for all that is asked for while the thread is at work, so that
/// many who sign in at once do not wait for one sync after the other. Each change is a part of the transaction: where it
/// fails, nothing of it has happened, and the others stand. All are told once the commit is durable.
@Loop
final class SharedCommits {
  /// Tells whoever waits for a change what came of it, unless the whole transaction failed.
  typealias Telling = @Sendable (_ failure: AccountStoreError?) -> Void

  /// A change that somebody waits for. It may be made again where the transaction was undone.
  struct Change: Sendable {
    /// Makes it, and returns its own failure and whom to tell.
    let make: @Sendable (SQLiteStoreFile) -> (failure: AccountStoreError?, tell: Telling)
    /// Tells that it was not made.
    let refuse: @Sendable (AccountStoreError) -> Void
  }

  /// Other processes wait for the lock meanwhile.
  private static let limit = 64

  private let writer: SQLiteThread<SQLiteStoreFile>
  private(set) var waiting: [Change] = []
  private(set) var committing: Task<Void, Never>?

  /// For changes by that thread.
  init(_ writer: SQLiteThread<SQLiteStoreFile>) { self.writer = writer }

  /// Makes a change, and returns once it is durable.
  func run<Value: Sendable>(
    _ change: @escaping @Sendable (SQLiteStoreFile) throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    let result: Result<Value, AccountStoreError> = await withCheckedContinuation { continuation in
      waiting.append(
        Change { file in
          let result = Result { () throws(AccountStoreError) in try change(file) }
          return switch result {
          case .success: (nil, { failure in continuation.resume(returning: failure.map { .failure($0) } ?? result) })
          case .failure(let own): (own, { _ in continuation.resume(returning: result) })
          }
        } refuse: {
          continuation.resume(returning: .failure($0))
        })
      guard committing == nil else { return }
      committing = Task(executorPreference: Loop.executor) { await self.commit() }
    }
    return try result.get()
  }

  private func commit() async {
    while !waiting.isEmpty {
      let changes = Array(waiting.prefix(Self.limit))
      waiting.removeFirst(changes.count)
      do throws(AccountStoreError) {
        try await writer.run { $0.make(changes) }
      } catch {
        for change in changes { change.refuse(error) }
      }
    }
    committing = nil
  }

  /// Returns once all that was asked for is durable, or has failed.
  func finish() async { await committing?.value }
}

extension SQLiteStoreFile {
  /// Makes changes in one transaction, and tells whoever waits for them.
  fileprivate func make(_ changes: [SharedCommits.Change]) {
    // One alone has a transaction of its own.
    guard changes.count > 1 else { return makeEach(changes) }
    var made: [SharedCommits.Telling] = []
    var isUndone = false
    do throws(AccountStoreError) {
      try share { () throws(AccountStoreError) in
        for change in changes {
          let (failure, tell) = change.make(self)
          made.append(tell)
          isUndone = !database.isInTransaction
          if isUndone { throw failure ?? AccountStoreError(.unavailable, "the transaction was undone") }
        }
      }
      for tell in made { tell(nil) }
    } catch {
      // What one of them did to the transaction is not the others' failure: nothing has happened, and nobody was told.
      if isUndone { return makeEach(changes) }
      for tell in made { tell(error) }
      for change in changes.dropFirst(made.count) { change.refuse(error) }
    }
  }

  private func makeEach(_ changes: [SharedCommits.Change]) { for change in changes { change.make(self).tell(nil) } }
}
