import AccountEvents
import Dispatch
import EventLoop
import SQLite
import Testing

@testable import AccountStore

/// Applications ask at once: what is asked for in one turn of the loop, or while others are answered, is answered as of one
/// moment.
@Loop @Suite(.timeLimit(.minutes(10))) struct SharedReadsTests {
  private let rig: SQLiteRig

  init() throws { rig = try SQLiteRig() }

  @Test func whoAsksInOneTurnIsAnsweredAsOfOneMoment() async throws {
    let store = try await rig.open()
    try await store.fill(1...1)
    let first = ask { try await isThere(store) }
    let removal = ask { try await removeAccounts(store) }
    let second = ask { try await isThere(store) }
    try await removal.value
    #expect(try await first.value)
    #expect(try await second.value, "it was there when the first was answered")
    #expect(try await !isThere(store))
    await store.close()
  }

  @Test func whoAsksWhileOthersAreAnsweredIsAnsweredAsOfTheNextMoment() async throws {
    let store = try await rig.open()
    try await store.fill(1...1)
    let (entered, end) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    let busy = ask {
      try await store.reads.run { _ in
        entered.continuation.yield()
        end.wait()
      }
    }
    for await _ in entered.stream { break }
    let removal = ask { try await removeAccounts(store) }
    await Loop.nextTurn()
    let later = ask { try await isThere(store) }
    await Loop.nextTurn()
    end.signal()
    try await busy.value
    try await removal.value
    #expect(try await later.value, "it was there when the removal was asked for")
    #expect(try await !isThere(store))
    await store.close()
  }

  @Test func whoAsksBehindAFailureIsAnsweredAnew() async throws {
    let store = try await rig.open()
    try await store.fill(1...1)
    let refused = AccountStoreError(.damaged, "a question of this test's")
    let first = ask { try await isThere(store) }
    let failing = ask { try await removeAccounts(store, failing: refused) }
    let others = (1...2).map { _ in ask { try await isThere(store) } }
    #expect(try await first.value)
    await #expect(throws: refused) { try await failing.value }
    for other in others { #expect(try await !other.value) }
    await store.close()
  }

  @Test func whoAsksWhenTheStoreIsClosedIsTold() async throws {
    let store = try await rig.open()
    await store.close()
    for one in (1...2).map({ _ in ask { try await isThere(store) } }) {
      await #expect(throws: AccountStoreError.self) { try await one.value }
    }
  }

  private func isThere(_ store: SQLiteAccountStore) async throws -> Bool {
    try await store.knowledge(of: store.id(of: Sample.account(1))) != .unknown
  }

  /// Asks, in the order of these calls.
  private func ask<Value: Sendable>(_ question: @escaping @Loop () async throws -> Value) -> Task<Value, any Error> {
    Task(executorPreference: Loop.executor) { try await question() }
  }

  /// By another connection, while the thread answers.
  private func removeAccounts(_ store: SQLiteAccountStore, failing failure: AccountStoreError? = nil) async throws {
    try await store.reads.run { [path = rig.path] _ throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in
        let other = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(60))
        try other.execute("DELETE FROM account")
      }
      if let failure { throw failure }
    }
  }
}
