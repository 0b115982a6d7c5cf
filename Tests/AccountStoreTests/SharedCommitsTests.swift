import AccountEvents
import Dispatch
import EventLoop
import Foundation
import SQLite
import TestSupport
import Testing

@testable import AccountStore

/// People sign in at once: what is asked for while the disk is busy is written together.
@Loop @Suite(.timeLimit(.minutes(30))) struct SharedCommitsTests {
  private let rig: SQLiteRig

  init() throws { rig = try SQLiteRig() }

  @Test func whoSignsInWhileTheDiskIsBusySharesACommit() async throws {
    let store = try await rig.open()
    let free = try await occupyThread(of: store)
    let before = try commits()
    let first = Task { try await signIn(1, store) }
    try await until { store.commits.committing != nil && store.commits.waiting.isEmpty }
    let people = [first] + (2...20).map { number in Task { try await signIn(number, store) } }
    try await until { store.commits.waiting.count == 19 }
    try await free()
    for person in people { #expect(try await person.value.isNew) }
    // The first one had begun before the others came.
    #expect(try commits() - before == 2)
    #expect(try rig.number("SELECT count(*) FROM account") == 20)
    await store.close()
  }

  @Test func aChangeThatFailsUndoesNothingOfTheOthers() async throws {
    let store = try await rig.open()
    let refused = AccountStoreError(.damaged, "a change of this test's")
    let free = try await occupyThread(of: store)
    let people = (1...3).map { number in Task { try await signIn(number, store) } }
    let failing = Task {
      try await store.commits.run { file throws(AccountStoreError) in
        try file.write { () throws(AccountStoreError) in
          try AccountStoreError.translating { () throws(SQLiteError) in
            try file.database.execute("DELETE FROM account")
          }
          throw refused
        }
      }
    }
    let late = Task { try await signIn(4, store) }
    try await free()
    for person in people + [late] { _ = try await person.value }
    await #expect(throws: refused) { try await failing.value }
    #expect(try rig.number("SELECT count(*) FROM account") == 4)
    await store.close()
  }

  /// As a page that cannot be read does it.
  @Test func whoUndoesTheWholeTransactionFailsAlone() async throws {
    let store = try await rig.open()
    let free = try await occupyThread(of: store)
    let people = (1...3).map { number in Task { try await signIn(number, store) } }
    let fatal = Task {
      try await store.commits.run { file throws(AccountStoreError) in
        try AccountStoreError.translating { () throws(SQLiteError) in try file.database.execute("ROLLBACK") }
        throw AccountStoreError(.unavailable, "a change of this test's")
      }
    }
    let late = Task { try await signIn(4, store) }
    try await free()
    await #expect(throws: AccountStoreError.self) { try await fatal.value }
    for person in people + [late] { #expect(try await person.value.isNew) }
    #expect(try rig.number("SELECT count(*) FROM account") == 4)
    #expect(try await signIn(5, store).isNew)
    await store.close()
  }

  /// Whatever has left a transaction open: nothing that comes next is told that it is durable.
  @Test func aTransactionThatSomebodyLeftOpenIsNobodys() async throws {
    let store = try await rig.open()
    try await store.writer.run { file throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in try file.database.execute("BEGIN IMMEDIATE") }
    }
    await #expect(throws: AccountStoreError.self) { try await signIn(1, store) }
    let both = (2...3).map { number in Task { try await signIn(number, store) } }
    for person in both { await #expect(throws: AccountStoreError.self) { try await person.value } }
    await store.close()
    #expect(try rig.number("SELECT count(*) FROM account") == 0)
  }

  @Test func whoWaitsForTheDiskWhenTheStoreIsClosedIsDoneFirst() async throws {
    let store = try await rig.open()
    let free = try await occupyThread(of: store)
    let first = Task { try await signIn(1, store) }
    try await until { store.commits.committing != nil && store.commits.waiting.isEmpty }
    let people = [first] + (2...100).map { number in Task { try await signIn(number, store) } }
    try await until { store.commits.waiting.count == 99 }
    let closing = Task { await store.close() }
    try await free()
    for person in people { #expect(try await person.value.isNew) }
    await closing.value
    #expect(try rig.number("SELECT count(*) FROM account") == 100)
  }

  @Test func whoSignsInWhenTheStoreIsClosedIsTold() async throws {
    let store = try await rig.open()
    await store.close()
    await #expect(throws: AccountStoreError.self) { try await signIn(1, store) }
  }

  /// Keeps the thread at work until what is returned is called.
  private func occupyThread(of store: SQLiteAccountStore) async throws -> @Loop () async throws -> Void {
    let (entered, end) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    let busy = Task {
      try await store.writer.run { _ throws(AccountStoreError) in
        entered.continuation.yield()
        end.wait()
      }
    }
    for await _ in entered.stream { break }
    return {
      // All have asked by then.
      for _ in 0..<100 { await Task.yield() }
      end.signal()
      try await busy.value
    }
  }

  private func signIn(_ number: Int, _ store: SQLiteAccountStore) async throws -> RecordedSignIn {
    try await store.recordSignIn(
      Sample.account(number), at: Sample.time(50), tokens: [Sample.token(number)], of: nil)
  }

  /// How many commits stand in the log: a frame that ends one has the size of the file. (SQLite's file format, 4.1)
  private func commits() throws -> Int {
    let log = try [UInt8](Data(contentsOf: URL(fileURLWithPath: rig.path + "-wal")))
    return stride(from: 32, to: log.count - 24, by: 24 + SQLiteStoreFile.pageSize).count { frame in
      log[(frame + 4)..<(frame + 8)].contains { $0 != 0 }
    }
  }
}
