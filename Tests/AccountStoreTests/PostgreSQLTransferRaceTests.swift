import AccountEvents
import EventLoop
import PostgreSQL
import TestSupport
import Testing

@testable import AccountStore

/// The batch of the receiving team, the one of the sending team and the person's sign-in come to one account at the same time,
/// by programs of their own.
@Loop @Suite(PostgreSQLServer.isThere, .serialized) struct PostgreSQLTransferRaceTests {
  private let before = Sample.account(1)
  private let after = Transfer.account(1)

  /// What comes to an account.
  private enum Step: CaseIterable, Sendable { case sending, receiving, signIn }

  private nonisolated func claim(_ number: Int = 1) -> TransferClaim {
    TransferClaim(
      Transfer.identifier(number), to: Transfer.receiving.client, address: Transfer.address(number), isPrivate: true)
  }

  /// Both teams' plans in one store, of people who had signed in before.
  private func prepare(_ store: any AccountStore, _ count: Int) async throws {
    try await store.fill(1...count)
    try await store.begin(Transfer.sending, with: Transfer.sent(1...count))
    try await store.begin(Transfer.receiving, with: Transfer.received(1...count))
  }

  private func take(_ step: Step, _ number: Int, _ store: any AccountStore) async throws {
    switch step {
    case .sending:
      #expect(try await store.record([Transfer.identified(Int64(number))], of: Transfer.sending) == [.done])
    case .receiving:
      #expect(try await store.record([Transfer.found(Int64(number))], of: Transfer.receiving) == [.done])
    case .signIn:
      let recorded = try await store.recordSignIn(
        Transfer.account(number), at: Sample.time(100), tokens: [Sample.token(100 + number)], of: nil,
        claiming: claim(number))
      #expect(recorded.over.isEmpty && recorded.conflict == nil)
    }
  }

  /// Whether the person is one: with the account of before, said once, and asked about by nobody any more.
  private func expectOne(_ number: Int, _ store: any AccountStore, hasSignedIn: Bool) async throws {
    let (before, after) = (Sample.account(number), Transfer.account(number))
    let user = try #require(try await store.users(of: Transfer.receiving).first { $0.number == number })
    #expect(user.state == .done && user.hasSignedIn == hasSignedIn, "\(number)")
    if hasSignedIn {
      guard case .known(let profile) = try await store.knowledge(of: store.id(of: after)) else {
        Issue.record("\(number) is not there")
        return
      }
      #expect(profile.origin?.former == store.id(of: before), "\(number)")
    }
  }

  private func transferred(_ store: any AccountStore) async throws -> [Account] {
    let page = try await store.takeOutbox(
      by: "reader", at: Sample.time(1_000_000), until: Sample.time(1_000_001), after: nil, limit: 1000)
    return try #require(page).records.map { try AccountEvent(decoding: $0.record.value) }
      .filter { $0.kind == .accountTransferred }.map(\.account)
  }

  @Test func batchAndSignInsAtTheSameTimeAreOneAccount() async throws {
    let rig = try await PostgreSQLRig()
    let stores = [try await rig.open(), try await rig.open(), try await rig.open()]
    let count = 60
    try await prepare(stores[0], count)
    for number in 1...count { try await take(.sending, number, stores[0]) }
    for number in 1...count {
      // Each store has either in some rounds.
      let tasks = stores.indices.map { index in
        let step = [Step.receiving, .signIn, .signIn][(index + number) % stores.count]
        return Task(executorPreference: Loop.executor) { try await self.take(step, number, stores[index]) }
      }
      for task in tasks { try await task.value }
      try await expectOne(number, stores[0], hasSignedIn: true)
    }
    let told = try await transferred(stores[0])
    for number in 1...count {
      #expect(told.count { $0 == Sample.account(number) } == 1 && told.count { $0 == Transfer.account(number) } == 1)
    }
    #expect(try await rig.administration.verify { _ in }.findings == [])
    for store in stores { await store.close() }
  }

  /// Otherwise those who erase, and hold the plans together, could keep out whoever writes what Apple has said for ever.
  @Test func nobodyOvertakesWhoWaitsForAPlan() async throws {
    let rig = try await PostgreSQLRig()
    let store = try await rig.open()
    try await prepare(store, 1)
    let database = try PostgreSQLStoreDatabase(rig.connectionInfo, connections: 4, statementTimeout: .seconds(300))
    let task = try await database.write { connection in
      try await connection.execute("SELECT FROM siwa.transfer_plan ORDER BY number FOR SHARE")
      let task = Task { try await take(.sending, 1, store) }
      try await untilSomebodyWaits(database)
      let error = await #expect(throws: AccountStoreError.self) {
        try await database.write { try await $0.execute("LOCK siwa.transfer_plan IN ROW SHARE MODE NOWAIT") }
      }
      #expect(error?.code == .unavailable)
      return task
    }
    try await task.value
    await database.close()
    await store.close()
  }

  private func untilSomebodyWaits(_ database: PostgreSQLStoreDatabase) async throws {
    try await until {
      try await database.read { connection in
        try await connection.execute(
          """
          SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
          """)
      } == 1
    }
  }

  /// What comes to the new account believes that it has come from nowhere, and waits for whoever holds it: the sending team's
  /// answer is written down before that lets it go.
  @Test(arguments: [Step.receiving, .signIn])
  private func whatFindsOutWhomItConcernsWhileItWaitsIsWrittenDown(_ step: Step) async throws {
    let rig = try await PostgreSQLRig()
    let (store, other) = (try await rig.open(), try await rig.open())
    try await prepare(store, 1)
    _ = try await store.recordSignIn(after, at: Sample.time(50), tokens: [])
    let database = try PostgreSQLStoreDatabase(rig.connectionInfo, connections: 4, statementTimeout: .seconds(300))
    let task = try await database.write { connection in
      try await connection.execute("SELECT FROM siwa.guard FOR UPDATE")
      let task = Task { try await take(step, 1, store) }
      try await untilSomebodyWaits(database)
      try await take(.sending, 1, other)
      return task
    }
    try await task.value
    try await expectOne(1, store, hasSignedIn: step == .signIn)
    #expect(Set(try await transferred(store)) == [before, after])
    await database.close()
    await other.close()
    await store.close()
  }
}
