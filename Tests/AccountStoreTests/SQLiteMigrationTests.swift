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
      ])
  }

  @Test func aStoreIsMadeOnceAndKept() async throws {
    #expect(try await rig.administration.migrate() == StoreMigration(from: 0, to: 4))
    let hash = try await rig.open().hash(of: Sample.account())
    #expect(try await rig.administration.migrate() == StoreMigration(from: 4, to: 4))
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
    #expect(try await rig.administration.migrate() == StoreMigration(from: version, to: 4))

    let store = try await rig.open()
    #expect(try await store.tokens(of: Sample.account()).map(\.token) == [Sample.token()])
    #expect(try await store.ownRevocations(of: Sample.account()) == [])
    try await OldStore.expectItsLedgerIsAnnounced(in: store)
    await store.close()
    #expect(try await rig.administration.verify { _ in }.findings == [])
  }

  /// A store as a program of that version has made it, with a token and a settled event.
  private func makeOldStore(_ version: Int) throws {
    let database = try Database(rig.path, .readWrite(pageSize: 4096), busyTimeout: .seconds(60))
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

  @Test func manyMayMigrateAtOnce() async throws {
    let administration = rig.administration
    let migrations = try await withThrowingTaskGroup(of: StoreMigration.self) { group in
      for _ in 0..<8 { group.addTask { try await administration.migrate() } }
      var migrations: [StoreMigration] = []
      for try await migration in group { migrations.append(migration) }
      return migrations
    }
    #expect(migrations.count { $0.from == 0 } == 1 && migrations.count == 8)
    #expect(try rig.number("SELECT count(*) FROM hash_key") == 1)
  }

  @Test func aMissingStoreNamesTheCommandThatMakesIt() async throws {
    await expectRefusal(.notMigrated, "`siwa store migrate` makes it")
    #expect(try rig.modes().keys.sorted() == ["master-key"], "looking for it must not make it")
    // An empty file is not one either.
    _ = rig.files.write("store.sqlite", "")
    await expectRefusal(.notMigrated, "run `siwa store migrate`")
    #expect(try await rig.administration.migrate() == StoreMigration(from: 0, to: 4))
  }

  @Test func aNewerStoreIsRefusedAndLeftAlone() async throws {
    await (try await rig.open()).close()
    try rig.execute("PRAGMA user_version = 99")
    await expectRefusal(.newerVersion, "version 99, and this program knows 4 at most")
    let error = await #expect(throws: AccountStoreError.self) { try await rig.administration.migrate() }
    #expect(error?.code == .newerVersion)
    #expect(try rig.number("PRAGMA user_version") == 99)
  }

  @Test func aDatabaseOfSomethingElseIsRefusedAndLeftAlone() async throws {
    try rig.execute("CREATE TABLE somebody (name TEXT)")
    await expectRefusal(.damaged, "a database of something else")
    let error = await #expect(throws: AccountStoreError.self) { try await rig.administration.migrate() }
    #expect(error?.code == .damaged)
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
