import AccountEvents
import Dispatch
import EventLoop
import SQLite
import TestSupport
import Testing

@testable import AccountStore

/// Applications ask at once: what is asked for in one turn of the loop, or while others are answered, is answered as of one
/// moment.
@Loop @Suite(.timeLimit(.minutes(30))) struct SharedReadsTests {
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
    let (busy, end) = await occupy { wait in try await store.reads.run { _ in wait() } }
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

  @Test(PageCache.isTold) func whatIsBriefIsAnsweredOnTheLoop() async throws {
    let store = try await rig.open()
    #expect(try await soon { try await store.reads.run(isBrief: true) { _ in isOnTheLoop } })
    #expect(try await !store.reads.run { _ in isOnTheLoop })
    await store.close()
  }

  @Test func theThreadAnswersWhereTheLoopWouldHaveToWait() async throws {
    let store = try await rig.open()
    let (busy, end) = await occupy { wait in try await store.readers.run { _ in wait() } }
    let brief = ask { try await store.reads.run(isBrief: true) { _ in isOnTheLoop } }
    await Loop.nextTurn()
    end.signal()
    try await busy.value
    #expect(try await !brief.value)
    await store.close()
  }

  @Test(PageCache.isTold) func whatFailsOnTheLoopIsAnsweredByTheThread() async throws {
    let store = try await rig.open()
    let isAnswered = try await soon {
      let asked = (1...3).map { number in
        ask {
          try await store.reads.run(isBrief: true) { _ throws(AccountStoreError) in
            if number == 2, isOnTheLoop {
              throw AccountStoreError(.unavailable, "the disk would have to be waited for")
            }
            return isOnTheLoop
          }
        }
      }
      #expect(try await !asked[1].value)
      #expect(try await !asked[2].value, "in the order in which they were asked")
      return try await asked[0].value
    }
    #expect(isAnswered)
    await store.close()
  }

  @Test func theThreadAnswersMany() async throws {
    let store = try await rig.open()
    let asked = (1...33).map { _ in ask { try await store.reads.run(isBrief: true) { _ in isOnTheLoop } } }
    for one in asked { #expect(try await !one.value) }
    await store.close()
  }

  /// Whether it holds at one of a hundred tries: the kernel may drop a page at any time, and then the thread answers.
  private func soon(_ condition: @Loop () async throws -> Bool) async throws -> Bool {
    for _ in 0..<100 { if try await condition() { return true } }
    return false
  }

  private func isThere(_ store: SQLiteAccountStore) async throws -> Bool {
    try await store.knowledge(of: store.id(of: Sample.account(1))) != .unknown
  }

  /// Has the readers' thread run what waits for `end`, and returns once it does.
  private func occupy(
    _ run: @escaping @Loop (_ wait: @escaping @Sendable () -> Void) async throws -> Void
  ) async -> (busy: Task<Void, any Error>, end: DispatchSemaphore) {
    let (entered, end) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    let busy = ask {
      try await run {
        entered.continuation.yield()
        end.wait()
      }
    }
    for await _ in entered.stream { break }
    return (busy, end)
  }

  /// Asks, in the order of these calls.
  private func ask<Value: Sendable>(_ question: @escaping @Loop () async throws -> Value) -> Task<Value, any Error> {
    Task(executorPreference: Loop.executor) { try await question() }
  }

  /// By another connection, while the thread answers.
  private func removeAccounts(_ store: SQLiteAccountStore, failing failure: AccountStoreError? = nil) async throws {
    try await store.reads.run { [path = rig.path] _ throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in
        let other = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
        try other.execute("DELETE FROM account")
      }
      if let failure { throw failure }
    }
  }
}

/// Whether the caller is on the loop's thread.
private var isOnTheLoop: Bool { Loop.executor.isIsolatingCurrentContext() ?? false }
