import AccountEvents
import EventLoop
import PostgreSQL
import TestSupport
import Testing

@testable import AccountStore

/// Several programs settle at once, the server among them fails, and everything happens once.
@Loop @Suite(PostgreSQLServer.isThere, .serialized) struct PostgreSQLConcurrencyTests {
  private let now = Sample.time(10_000)

  private func settle(_ settlements: [Settlement], _ store: any AccountStore) -> Task<[SettledOutcome], any Error> {
    Task { [now] in try await store.settle(settlements, at: now) }
  }

  /// As a consumer does.
  private func settleUntilKnown(
    _ settlements: [Settlement], _ store: any AccountStore
  ) async throws -> [SettledOutcome] {
    while true {
      do throws(AccountStoreError) {
        return try await store.settle(settlements, at: now)
      } catch {
        guard error.isTransient else { throw error }
      }
    }
  }

  @Test func ofTwoThatSettleAnEventAtOnceOneHasIt() async throws {
    let rig = try await PostgreSQLRig()
    let stores = [try await rig.open(), try await rig.open()]
    for number in 0..<200 {
      let event = Sample.event("event-\(number)", of: Sample.account(number), at: 1)
      let settlement = event.settled(.setRelay(Sample.enabled(1)))
      let tasks = stores.map { settle([settlement], $0) }
      var outcomes: [SettledOutcome] = []
      for task in tasks { outcomes += try await task.value }
      #expect(outcomes.count { $0.isRepeated } == 1)
      #expect(outcomes.count { $0 == .applied } == 1)
    }
    #expect(try await rig.run("SELECT count(*) FROM siwa.ledger") == "200")
    for store in stores { await store.close() }
  }

  /// The same accounts in opposite orders, older events and newer ones: nobody waits for each other, and the newest count.
  @Test func groupsOfTheSameAccountsEndAsOneAfterTheOther() async throws {
    let rig = try await PostgreSQLRig()
    let stores = [try await rig.open(), try await rig.open(), try await rig.open()]
    for round in 0..<10 {
      let groups = stores.indices.map { index in
        (0..<100).map { number in
          Sample.event("\(round)-\(index)-\(number)", of: Sample.account(number), at: Int64(round * 3 + index))
            .settled(.setRelay(Sample.enabled(Int64(round * 3 + index))))
        }
      }
      let tasks = zip(stores, groups).map { store, group in
        settle(round.isMultiple(of: 2) ? group : group.reversed(), store)
      }
      for task in tasks { #expect(try await task.value.count == 100) }
      let states = try await stores[0].relayStates(of: (0..<100).map(Sample.account))
      #expect(Set(states) == [.known(Sample.enabled(Int64(round * 3 + 2)))])
    }
    for store in stores { await store.close() }
  }

  /// An erasure and what an event would keep: whichever comes first, nothing is kept of what happened before it.
  @Test func anErasureBesideOtherConsumersLeavesNothing() async throws {
    let rig = try await PostgreSQLRig()
    let stores = [try await rig.open(), try await rig.open()]
    for number in 0..<100 {
      let account = Sample.account(number)
      let tasks = [
        settle(
          [Sample.event("d\(number)", of: account, at: 9).settled(by: Sample.eraser, .eraseAccount(isFinal: true))],
          stores[0]),
        settle(
          [Sample.event("e\(number)", of: account, at: 5, yieldsTo: [.erasure]).settled(.setRelay(Sample.enabled(5)))],
          stores[1]),
      ]
      for task in tasks { _ = try await task.value }
    }
    #expect(try await rig.run("SELECT count(*) FROM siwa.account") == "0")
    #expect(try await rig.run("SELECT count(*) FROM siwa.ledger") == "200")
    for store in stores { await store.close() }
  }

  /// Those who hold all plans.
  @Loop private final class Holders {
    private let database: PostgreSQLStoreDatabase
    private(set) var count = 0

    init(_ database: PostgreSQLStoreDatabase) { self.database = database }

    /// Holds them as an erasure does.
    func hold(until end: Signal) async throws {
      try await database.write { connection in
        try await connection.execute("SELECT FROM siwa.transfer_plan ORDER BY number FOR SHARE")
        self.count += 1
        await end.wait()
      }
    }

    /// How many wait for somebody.
    func waiting() async throws -> Int {
      try await database.read { connection in
        try await connection.execute(
          """
          SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
          """)
      }
    }
  }

  /// Whoever erases somebody holds all plans for a moment, and there is always one who does.
  @Test func aPlanIsRemovedUnderASteadyLoadOfErasures() async throws {
    let rig = try await PostgreSQLRig()
    let store = try await rig.open()
    try await store.begin(Transfer.sending, with: Transfer.sent(1...2))
    let database = try PostgreSQLStoreDatabase(rig.connectionInfo, connections: 4, statementTimeout: .seconds(300))
    let holders = Holders(database)
    let removed = Signal()
    func hold(until end: Signal) -> Task<Void, any Error> {
      Task(executorPreference: Loop.executor) { try await holders.hold(until: end) }
    }
    var end = Signal()
    var erasure = hold(until: end)
    try await until { holders.count == 1 }
    let removal = Task(executorPreference: Loop.executor) {
      let isRemoved = try await store.removePlan(Transfer.sending.name)
      await removed.fire()
      return isRemoved
    }
    for number in 2...100 {
      try await until {
        if removed.isFired { return true }
        return try await holders.waiting() > 0
      }
      if removed.isFired { break }
      let nextEnd = Signal()
      let next = hold(until: nextEnd)
      try await until {
        if removed.isFired || holders.count == number { return true }
        return try await holders.waiting() > 1
      }
      end.fire()
      try await erasure.value
      (end, erasure) = (nextEnd, next)
    }
    #expect(removed.isFired)
    end.fire()
    try await erasure.value
    #expect(try await removal.value)
    await database.close()
    await store.close()
  }

  /// Who writes what Apple has said takes the lease first, and then the plan.
  @Test func whoRemovesAPlanHoldsItNotWhileTheLeaseIsSomebodyElses() async throws {
    let rig = try await PostgreSQLRig()
    let store = try await rig.open()
    try await store.begin(Transfer.sending, with: Transfer.sent(1...2))
    let database = try PostgreSQLStoreDatabase(rig.connectionInfo, connections: 4, statementTimeout: .seconds(300))
    let holders = Holders(database)
    var attempts = 0
    let removal = try await database.write { connection in
      attempts += 1
      #expect(try await connection.execute("UPDATE siwa.lease SET until = 2") == 1)
      let removal = Task { try await store.removePlan(Transfer.sending.name) }
      try await until { try await holders.waiting() > 0 }
      try await connection.execute("LOCK siwa.transfer_plan IN ROW SHARE MODE NOWAIT")
      return removal
    }
    #expect(attempts == 1)
    #expect(try await removal.value)
    await database.close()
    await store.close()
  }

  /// What they add would be nobody's to open once the key before is destroyed.
  @Test func whoReplacesTheMasterKeyWaitsForThoseWhoWriteWithTheOneBefore() async throws {
    let rig = try await PostgreSQLRig()
    await (try await rig.open()).close()
    let administration = PostgreSQLStoreAdministration(rig.connectionInfo, try newMasterKey().replacing(rig.key))
    let database = try PostgreSQLStoreDatabase(rig.connectionInfo, connections: 4, statementTimeout: .seconds(300))
    let holders = Holders(database)
    let rotation = try await database.write { connection in
      try await connection.execute("LOCK siwa.hash_key IN ROW SHARE MODE")
      let rotation = Task { try await administration.rotateKey { _ in } }
      try await until { try await holders.waiting() > 0 }
      return rotation
    }
    #expect(try await rotation.value.left == 0)
    await database.close()
  }

  @Test func whatDoesNotFitBesideOthersIsTriedAgain() async throws {
    let rig = try await PostgreSQLRig()
    let store = try await rig.open()
    try await rig.run(
      """
      CREATE SEQUENCE attempts MINVALUE -1000 START 1;
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
          IF nextval('attempts') < 4 THEN RAISE EXCEPTION 'not now' USING ERRCODE = '40001'; END IF;
          RETURN NULL;
        END $$;
      CREATE TRIGGER refusal AFTER INSERT ON siwa.ledger FOR EACH STATEMENT EXECUTE FUNCTION refuse();
      """)
    let event = Sample.event("a", at: 1)
    let settlement = event.settled(.setRelay(Sample.enabled(1)))
    #expect(try await store.settle([settlement], at: now) == [.applied])
    #expect(try await rig.run("SELECT count(*) FROM siwa.ledger") == "1")
    // No patience is endless.
    try await rig.run("SELECT setval('attempts', -1000)")
    let other = Sample.event("b", at: 2).settled()
    let error = await #expect(throws: AccountStoreError.self) { try await store.settle([other], at: now) }
    #expect(error?.code == .unavailable && error?.isTransient == true)
    #expect(try await store.standings(of: [other.event], for: Sample.relay) == [.open(FailedAttempts())])
    await store.close()
  }

  @Test func whatTheCommitHasBecomeOfIsFoundOutByTheSameCall() async throws {
    let rig = try await PostgreSQLRig()
    let store = try await rig.open()
    try await rig.run(
      """
      CREATE SEQUENCE ends;
      CREATE FUNCTION end_it() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
          IF nextval('ends') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
          RETURN NULL;
        END $$;
      CREATE CONSTRAINT TRIGGER last AFTER INSERT ON siwa.ledger DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION end_it();
      """)
    let settlement = Sample.event("a", at: 1).settled(.setRelay(Sample.enabled(1)))
    let error = await #expect(throws: AccountStoreError.self) { try await store.settle([settlement], at: now) }
    #expect(error?.code == .uncertain && error?.isTransient == true)
    #expect(try await store.settle([settlement], at: now) == [.applied])
    #expect(try await store.settle([settlement], at: now) == [.repeated(settlement.event.entry(at: now))])
    await store.close()
  }

  /// The server is killed while rows are moved to another hashing key, and while it settles.
  @Test(.timeLimit(.minutes(30)))
  func aServerThatIsKilledWhileRowsAreMovedLosesNoFence() async throws {
    var random = SeededRandom()
    let server = try await PostgreSQLServer()
    let rig = try await PostgreSQLRig(of: server)
    let store = try await rig.open()
    let erased = (0..<900).map { Sample.account($0) }
    let erasures = erased.enumerated().map { Sample.event("erasure-\($0)", of: $1, at: 100, severity: 1) }
    let late = erased.enumerated().map { Sample.event("late-\($0)", of: $1, at: 50) }
    _ = try await settleUntilKnown(erasures.map { $0.settled(.eraseAccount(isFinal: true)) }, store)
    let key = try newHashKey()
    var isDone = false
    for round in 0..<4 where !isDone {
      let rotation = Task { try await rig.administration.rotateHashKey(to: key) { _ in } }
      for _ in 0..<Int.random(in: 0...2000, using: &random) { await Task.yield() }
      server.kill()
      let isBack = Task { try await server.start() }
      if case .success = await rotation.result { isDone = true }
      try await isBack.value
      let group = late.map { Sample.event("\($0.id)-\(round)", of: $0.account, hash: $0.hash, at: 60) }
      let outcomes = try await settleUntilKnown(group.map { $0.settled(.setRelay(Sample.enabled(60))) }, store)
      #expect(outcomes.allSatisfy { $0 == .superseded(.newerEvent) || $0.isRepeated })
    }
    _ = try await rig.administration.rotateHashKey(to: key) { _ in }
    #expect(try await store.standings(of: late, for: Sample.relay).allSatisfy { $0 == .superseded(.newerEvent) })
    #expect(store.hashes(of: erased[0]).count == 2)
    let report = try await rig.administration.verify { _ in }
    #expect(report.findings == [] && report.accounts == 0 && !report.isMoving)
    #expect(try await rig.run("SELECT count(*), min(generation) FROM siwa.guard") == "900|2")
    await store.close()
  }

  /// The server is killed while it settles, again and again, as by power cuts.
  @Test(.timeLimit(.minutes(30)))
  func aKilledServerLeavesWholeGroups() async throws {
    var random = SeededRandom()
    let server = try await PostgreSQLServer()
    let rig = try await PostgreSQLRig(of: server)
    let store = try await rig.open()
    var groups = 0
    for _ in 0..<5 {
      let kill = groups + Int.random(in: 1...20, using: &random)
      var isBack: Task<Void, any Error>?
      for _ in 0..<30 {
        groups += 1
        let group = (0..<50).map { number in
          Sample.event("\(groups)-\(number)", of: Sample.account(groups * 100 + number % 40), at: Int64(number))
            .settled(.setRelay(Sample.enabled(Int64(number))))
        }
        let task = Task { try await settleUntilKnown(group, store) }
        if groups == kill {
          for _ in 0..<Int.random(in: 0...40, using: &random) { await Task.yield() }
          server.kill()
          isBack = Task { try await server.start() }
        }
        #expect(try await task.value.count == 50)
      }
      try await isBack?.value
    }
    #expect(
      try await rig.run("SELECT count(*), count(DISTINCT event_id) FROM siwa.ledger") == "\(groups * 50)|\(groups * 50)"
    )
    #expect(try await rig.run("SELECT count(*) FROM siwa.account") == "\(groups * 40)")
    #expect(try await rig.administration.verify { _ in }.findings == [])
    await store.close()
  }
}
