import AccountEvents
import Cryptography
import EventLoop
import SQLite
import TestSupport
import Testing

@testable import AccountStore

/// The form of the file: made once, brought forward, never guessed.
@Loop @Suite struct SQLiteMigrationTests {
  private let rig: SQLiteRig

  init() throws { rig = try SQLiteRig() }

  /// A step that somebody has run is never changed; a new form gets a new step, and a new line here.
  @Test func theStepsAreFrozen() {
    #expect(
      SQLiteMigrations.steps.map { SHA256.digest(of: Array($0.description.utf8)).description } == [
        "540589d5eca3b3024d6e66cf7f2f539ad5b5625fed79f41ae91adc09bd7496cf",
        "3e20132e5e0270bd2e3d2ee395d77e07aba8ef7ca4c04a7c6a4bf16943149c9d",
        "1eeb897659599ddac25ebfd77a1d62e7f3e54f94c59451052faabfdd515884df",
        "2705583a4366d2f57aeb68c06400edd12f334f849119fdcf301ef5ccfefcffa0",
        "8571281a185a6eea57696a7802659b42adee4a60c0de2c5e40152e460de33fb1",
        "d25d34c32ad4a825fe80388bc3df202291b23f88e88d429e9fbd37b48d344ad1",
        "fb0b4450af30214dfe86faab782d3ffa635f98978b92c9b960e9c5bd025c5065",
        "a64a4426961d0ad677f8fdda008368c66732cc32f5cf2b11e3e7e6a226cbe6ca",
        "0c89ee287446739223be713c60ca75026abe7b1d1908d4fda34f5b8aac01ea7e",
        "95b18ae5fa8538ae702401e89ad2b5c4e05919946fcfe07f427e53544f7a4e3f",
      ])
  }

  @Test func aStoreIsMadeOnceAndKept() async throws {
    #expect(try await rig.administration.begin())
    let hash = try await rig.open().hash(of: Sample.account())
    #expect(try await rig.administration.migrate() == StoreMigration(from: 10, to: 10))
    #expect(try await !rig.administration.begin())
    #expect(try await rig.open().hash(of: Sample.account()) == hash)
    #expect(try rig.modes()["store.sqlite"] == 0o600)
  }

  @Test(arguments: [1, 2])
  func anOlderStoreIsBroughtForwardWithWhatIsInIt(version: Int) async throws {
    try makeOldStore(version)
    await expectRefusal(.notMigrated, "run `siwa store migrate`")
    // What waits to be announced, this version would not announce.
    try rig.execute("INSERT INTO announcement VALUES (7, 'email-relay', 3, x'00')")
    let refusal = await #expect(throws: AccountStoreError.self) { try await rig.administration.migrate() }
    #expect(refusal?.code == .failed && refusal?.detail.contains("not made yet (1)") == true)
    #expect(try rig.number("PRAGMA user_version") == Int64(version))
    try rig.execute("DELETE FROM announcement")
    #expect(try await rig.administration.migrate() == StoreMigration(from: version, to: 10))

    let store = try await rig.open()
    #expect(try await store.tokens(of: Sample.account()).map(\.token) == [Sample.token()])
    #expect(try await store.ownRevocations(of: Sample.account()) == [])
    try await OldStore.expectItsLedgerIsAnnounced(in: store)
    await store.close()
    #expect(try await rig.administration.verify { _ in }.findings == [])
  }

  /// A store as a program of that version has made it, with a token and a settled event.
  private func makeOldStore(_ version: Int) throws {
    let database = try Database(rig.path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    for step in SQLiteMigrations.steps[..<version] { try database.execute(step) }
    let old = try OldStore(rig.key)
    try database.prepare("INSERT INTO store_key VALUES (1, ?, ?, zeroblob(60))").run(rig.key.id, old.hashKey)
    try database.prepare("INSERT INTO account (hash, team, subject, master_key_id, data_key) VALUES (?, ?, ?, ?, ?)")
      .run(old.account.hash.bytes, old.account.team, old.account.subject, rig.key.id, old.account.key.bytes)
    try database.prepare("INSERT INTO token VALUES (1, ?, randomblob(32), 'refresh', ?, ?, ?)")
      .run(old.account.hash.bytes, Sample.client.text, Sample.time(1).milliseconds, old.token)
    let entry = OldStore.event
    try database.prepare("INSERT INTO ledger VALUES ('email-relay', ?, ?, 'done', ?, ?, ?, ?)").run(
      entry.id.text, old.account.hash.bytes, Sample.time(2).milliseconds, entry.origin.topic,
      Int64(entry.origin.partition), entry.origin.offset)
  }

  /// With erasures that are open, states of mail, fences of all kinds, and a rotation of the hashing key under way.
  @Test(arguments: [nil, 0, 1, 3, 8, 13])
  func theVersionBeforeLastIsBroughtForwardInTheMidstOfARotation(steps: Int?) async throws {
    var store = try await rig.open()
    try await Population.settle(in: store)
    let before = try await Population.Knowledge(of: store)
    #expect(before.hasAll)
    let standings = try await standingsOfLateEvents(in: store)
    #expect(Set(standings).count == 3)
    await store.close()
    if let steps {
      let rotation = try SQLiteHashRotation(try SQLiteStoreFile(rig.path, rig.key), page: 1)
      #expect(try rotation.begin(to: newHashKey()))
      for _ in 0..<steps { _ = try rotation.step() }
    }

    try rig.makeOlder()
    #expect(try rig.number("SELECT count(*) FROM relay") == 2)
    #expect(try await rig.administration.migrate() == StoreMigration(from: 4, to: Int(SQLiteMigrations.version)))
    let report = try await rig.administration.verify { _ in }
    #expect(report.findings == [] && report.isMoving == (steps != nil))
    store = try await rig.open()
    // Somebody moves what there is of a few; the rotation goes on with the others.
    #expect(try await standingsOfLateEvents(in: store) == standings)
    #expect(try await Population.Knowledge(of: store) == before)
    if steps != nil { _ = try await rig.administration.rotateHashKey(to: nil) { _ in } }
    #expect(try await Population.Knowledge(of: store) == before)
    #expect(try await standingsOfLateEvents(in: store) == standings)

    // The next state of mail takes its fence to itself, and the table has none of that kind any more.
    let fences = try #require(try rig.number("SELECT count(*) FROM event_fence"))
    let mail = Sample.event("mail-1-1", of: Population.signedIn, at: 7).settled(.setRelay(Sample.disabled(7)))
    #expect(try await store.settle([mail], at: Sample.time(10_001)) == [.applied])
    #expect(try rig.number("SELECT count(*) FROM event_fence") == fences - 1)
    #expect(try rig.number("SELECT count(*) FROM mail WHERE fence_at IS NOT NULL") == 1)
    let late = Sample.event("late", of: Population.signedIn, at: 6)
    #expect(try await store.standings(of: [late], for: Sample.relay) == [.superseded(.newerEvent)])
    await store.close()
    #expect(try await rig.administration.verify { _ in }.findings == [])
  }

  private func standingsOfLateEvents(in store: any AccountStore) async throws -> [EventStanding] {
    var standings: [EventStanding] = []
    for consumer in [Sample.relay, Sample.eraser, Sample.revoker] {
      let events = Population.accounts.flatMap { account in
        [Sample.event("late", of: account, at: 1), Sample.event("late", of: account, at: 60, yieldsTo: [.erasure])]
      }
      standings += try await store.standings(of: events, for: consumer)
    }
    return standings
  }

  /// One that was there before the store was brought forward, and looks for fences where they were.
  @Test func aProgramOfTheVersionBeforeSettlesNothing() async throws {
    await (try await rig.open()).close()
    try rig.makeOlder()
    let database = try Database(rig.path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    let statements = [
      try database.prepare("SELECT EXISTS (SELECT 1 FROM fence WHERE consumer = 'email-relay')"),
      try database.prepare("UPDATE relay SET status = 'enabled'"),
    ]
    for statement in statements { try statement.run() }
    _ = try await rig.administration.migrate()
    for statement in statements {
      let error = #expect(throws: SQLiteError.self) { try statement.run() }
      #expect(error?.code == .other || error?.code == .schema)
    }
  }

  /// It is of the one version or of the other, and has all that it had.
  @Test(.timeLimit(.minutes(30)))
  func aMigrationThatIsKilledHasHappenedOrNot() async throws {
    let store = try await rig.open()
    try await Population.settle(in: store)
    let before = try await Population.Knowledge(of: store)
    let people = (100..<4100).map { Sample.account($0) }
    let mail = people.enumerated().map {
      Sample.event("many-\($0)", of: $1, at: 5).settled(.setRelay(Sample.enabled(5)))
    }
    _ = try await store.settle(mail, at: Sample.time(10_000))
    await store.close()
    try rig.makeOlder()
    var random = SeededRandom()
    for _ in SeededRandom.rounds(8) {
      try await RunningProgram.run("durable-writer", ["migrate", rig.files.path, "0"]) { program in
        _ = try await program.outputLine(with: "migrating")
        for _ in 0..<Int.random(in: 0...2000, using: &random) { await Task.yield() }
        try await program.killAndRead()
        #expect(program.errors == "")
      }
      let version = try #require(try rig.number("PRAGMA user_version"))
      #expect([4, SQLiteMigrations.version].contains(version), "SEED=\(random.seed)")
      #expect(try rig.number("SELECT count(*) FROM sqlite_schema WHERE name IN ('fence', 'event_fence')") == 1)
      #expect(try rig.number("SELECT count(*) FROM ledger WHERE event_id LIKE 'many-%'") == 4000)
      if version == SQLiteMigrations.version { try rig.makeOlder() }
    }
    _ = try await rig.administration.migrate()
    #expect(try await rig.administration.verify { _ in }.findings == [])
    let migrated = try await rig.open()
    #expect(try await Population.Knowledge(of: migrated) == before)
    let late = people.map { Sample.event("late", of: $0, at: 4) }
    #expect(
      try await migrated.standings(of: late, for: Sample.relay).allSatisfy { $0 == .superseded(.newerEvent) })
    await migrated.close()
  }

  @Test func whoeverBeginsAStoreAtOnceOneMakesIt() async throws {
    #expect(try await rig.administration.beginAtOnce(8) == (1, 8))
    #expect(try rig.number("SELECT count(*) FROM hash_key") == 1)
  }

  @Test(.timeLimit(.minutes(30))) func whoLooksWhileAStoreIsMadeSeesNoneOrAllOfIt() async throws {
    let thread = BlockingThread(named: "looking")
    defer { thread.close() }
    for _ in 0..<20 {
      let rig = try SQLiteRig()
      let path = rig.files.write("store.sqlite", "")
      async let looking = thread.run { Result { try Self.lookUntilThereIsOne(path) } }
      _ = try await rig.administration.begin()
      try await looking.get()
    }
  }

  /// Throws what is said of the file, unless that is that there is no store in it yet.
  private nonisolated static func lookUntilThereIsOne(_ path: String) throws {
    let database = try Database(path, .readOnly, busyTimeout: .seconds(300))
    while true {
      do throws(AccountStoreError) {
        return try SQLiteStoreFile.expectVersion(of: database)
      } catch {
        guard error.code == .notMigrated else { throw error }
      }
    }
  }

  @Test func aMissingStoreNamesTheCommandThatMakesIt() async throws {
    await expectRefusal(.notMigrated, StoreBeginning.words)
    await rig.administration.expectNoneToMigrate()
    #expect(try rig.modes().keys.sorted() == ["master-key"], "looking for it must not make it")
    // An empty file is not one either.
    _ = rig.files.write("store.sqlite", "")
    await expectRefusal(.notMigrated, StoreBeginning.words)
    await rig.administration.expectNoneToMigrate()
    #expect(try await rig.administration.begin())
  }

  @Test func aNewerStoreIsRefusedAndLeftAlone() async throws {
    await (try await rig.open()).close()
    try rig.execute("PRAGMA user_version = 99")
    await expectRefusal(.newerVersion, "version 99, and this program knows 10 at most")
    let error = await #expect(throws: AccountStoreError.self) { try await rig.administration.migrate() }
    #expect(error?.code == .newerVersion)
    #expect(try rig.number("PRAGMA user_version") == 99)
  }

  @Test func aDatabaseOfSomethingElseIsRefusedAndLeftAlone() async throws {
    try rig.execute("CREATE TABLE somebody (name TEXT)")
    await expectRefusal(.damaged, "a database of something else")
    for change in [{ _ = try await rig.administration.migrate() }, { _ = try await rig.administration.begin() }] {
      let error = await #expect(throws: AccountStoreError.self) { try await change() }
      #expect(error?.code == .damaged)
    }
    #expect(try rig.number("SELECT count(*) FROM sqlite_schema") == 1)
  }

  @Test func aFileThatIsNoDatabaseIsRefused() async throws {
    _ = rig.files.write("store.sqlite", String(repeating: "no database ", count: 1000))
    await expectRefusal(.damaged, "")
  }

  private func expectRefusal(
    _ code: AccountStoreError.Code, _ words: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    let error = await #expect(throws: AccountStoreError.self, sourceLocation: sourceLocation) {
      try await SQLiteAccountStore.open(rig.path, rig.key)
    }
    #expect(error?.code == code, "\(error?.detail ?? "")", sourceLocation: sourceLocation)
    #expect(error?.detail.hasSuffix(words) == true, "\(error?.detail ?? "")", sourceLocation: sourceLocation)
    #expect(error?.isTransient == false, sourceLocation: sourceLocation)
  }
}
