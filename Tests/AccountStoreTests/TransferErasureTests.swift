import AccountEvents
import EventLoop
import Foundation
import SQLite
import TestSupport
import Testing

@testable import AccountStore

/// Whoever is erased is moved nowhere, and nothing of a plan that is removed is left.
@Loop @Suite struct TransferErasureTests {
  private let sending = Transfer.sending
  private let receiving = Transfer.receiving

  @Test(arguments: Implementation.all)
  func whoeverIsErasedLeavesThePlan(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      try await store.fill(1...3)
      try await store.begin(sending, with: Transfer.sent(1...4))
      #expect(try await store.record([Transfer.identified(1)], of: sending) == [.done])
      #expect(try await administration.holdings(of: Sample.account(1)).transfers == 1)
      // One whose identifier there is, one who waits, and one of whom there is no account.
      for number in [1, 2, 4] { try await store.erase(Sample.account(number), at: 50, "gone-\(number)") }
      #expect(try await store.users(of: sending).map(\.number) == [3])
      #expect(try await administration.holdings(of: Sample.account(1)).transfers == 0)
      // Apple answers late, and somebody brings their list again.
      #expect(
        try await store.record([Transfer.identified(2), Transfer.identified(3)], of: sending) == [.refused, .done])
      #expect(try await store.add(Transfer.sent(1...4), to: sending) == 0)
      #expect(try await store.addAccounts(to: sending, after: nil, limit: 10).new == 0)
      #expect(try await store.users(of: sending).map(\.number) == [3])
      // What Apple tells of their mail afterwards brings nobody back; who signs in again is a user again, by another number.
      let mail = Sample.event("mail", of: Sample.account(1), at: 60)
      #expect(try await store.settle([mail.settled(.setRelay(Sample.enabled(60)))], at: Sample.time(60)) == [.applied])
      #expect(try await store.addAccounts(to: sending, after: nil, limit: 10).new == 0)
      _ = try await store.recordSignIn(Sample.account(2), at: Sample.time(70), tokens: [])
      #expect(try await store.add(Transfer.sent(1...4), to: sending) == 1)
      #expect(try await store.users(of: sending).map(\.number) == [3, 5])
      #expect(try await administration.verify { _ in }.findings == [])
    }
  }

  @Test(arguments: Implementation.all)
  func whoeverIsErasedAtEitherTeamIsNotReceived(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.begin(sending, with: Transfer.sent(1...4))
      try await store.begin(receiving, with: Transfer.received(1...4))
      _ = try await store.record((1...4).map { Transfer.identified($0) }, of: sending)
      _ = try await store.record([Transfer.found(1), Transfer.found(2), Transfer.found(3, as: 2)], of: receiving)
      try await store.erase(Sample.account(1), at: 50, "old-1")
      #expect(try await store.users(of: receiving).map(\.number) == [2, 3, 4], "their account of before is gone")
      #expect(try await store.users(of: sending).map(\.number) == [2, 3, 4])
      try await store.erase(Transfer.account(2), at: 50, "new-2")
      #expect(try await store.users(of: receiving).map(\.number) == [4], "with the one that came to the same account")
      #expect(try await store.users(of: sending).map(\.number) == [2, 3, 4], "who is erased at one team has the other")
    }
  }

  /// From a backup: the outcome says who was erased since, by the hash alone.
  @Test(arguments: Implementation.all, [0, 1, 2])
  func whoWasErasedSinceABackupLeavesThePlan(_ implementation: Implementation, rotations: Int) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      try await store.fill(1...2)
      try await store.begin(sending, with: Transfer.sent(1...4))
      for _ in 0..<rotations { _ = try await administration.rotateHashKey(to: newHashKey()) { _ in } }
      _ = try await store.lease(sending.lease)
      _ = try await store.tokens(of: Sample.account(1))
      let outcomes = [1, 3].map { number in
        RecordedOutcome(
          account: store.hash(of: Sample.account(number)), consumer: Sample.eraser,
          event: Sample.valid(EventID("gone-\(number)")), at: Sample.time(50), ending: .erased(isFinal: true))
      }
      _ = try await store.reconcile(with: outcomes, isRehearsal: true)
      #expect(try await store.users(of: sending).count == 4)
      for _ in 1...2 {
        _ = try await store.reconcile(with: outcomes, isRehearsal: false)
        #expect(try await store.users(of: sending).map(\.number) == [2, 4])
      }
    }
  }

  // MARK: Whoever has the database, and not the key

  private nonisolated static let canaries = (1...4).flatMap {
    [
      Transfer.key($0), Sample.account($0).subject.text, Transfer.identifier($0).text,
      Transfer.account($0).subject.text,
      Transfer.address($0).text,
    ]
  }

  @Loop
  private func fill(_ store: any AccountStore) async throws {
    try await store.begin(sending, with: Transfer.sent(1...4))
    try await store.begin(receiving, with: Transfer.received(1...4))
    _ = try await store.record((1...4).map { Transfer.identified($0) }, of: sending)
    _ = try await store.record((1...3).map { Transfer.found($0) }, of: receiving)
  }

  @Test func aStolenFileNamesNobodyAndWhatGoesIsGone() async throws {
    let rig = try SQLiteRig()
    let store = try await rig.open()
    try await fill(store)
    #expect(try rig.found(Self.canaries) == [])
    #expect(try rig.found([sending.name]) == [sending.name], "the bytes are those of the store")
    let people = try sealed(rig, "SELECT person FROM transfer_user WHERE number = 1")
    #expect(try left(of: people, rig) == 2)
    try await store.erase(Sample.account(1), at: 50)
    #expect(try rig.number("SELECT count(*) FROM transfer_user") == 6)
    #expect(try left(of: people, rig) == 0, "neither in a free page nor in the log")
    let keys = try sealed(rig, "SELECT data_key FROM transfer_plan")
    let others = try sealed(rig, "SELECT person FROM transfer_user")
    #expect(try left(of: keys, rig) == 2)
    for plan in [sending, receiving] { #expect(try await store.removePlan(plan.name)) }
    #expect(try left(of: keys + others, rig) == 0)
    await store.close()
    #expect(try rig.found(Self.canaries) == [])
    #expect(try await rig.administration.verify { _ in }.findings == [])
  }

  private func sealed(_ rig: SQLiteRig, _ sql: StaticString) throws -> [[UInt8]] {
    var values: [[UInt8]] = []
    try Database(rig.path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300)).prepare(sql).forEach {
      row throws(SQLiteError) in values.append(try row.value(0))
    }
    return values
  }

  /// How many of the values stand in any file of the store.
  private func left(of values: [[UInt8]], _ rig: SQLiteRig) throws -> Int {
    let content = try rig.content()
    return values.count { content.range(of: Data($0)) != nil }
  }

  @Test(PostgreSQLServer.isThere) func aStolenDatabaseNamesNobody() async throws {
    let rig = try await PostgreSQLRig()
    let store = try await rig.open()
    try await fill(store)
    let dump = try await rig.dump()
    for canary in Self.canaries {
      let digits = canary.utf8.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
      #expect(!dump.contains(canary) && !dump.contains(digits), "\(canary)")
    }
    #expect(dump.contains(sending.name))
    await store.close()
  }
}
