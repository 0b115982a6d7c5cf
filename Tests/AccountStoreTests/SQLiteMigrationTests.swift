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
      ])
  }

  @Test func aStoreIsMadeOnceAndKept() async throws {
    #expect(try await rig.administration.migrate() == StoreMigration(from: 0, to: 2))
    let hash = try await rig.open().hash(of: Sample.account())
    #expect(try await rig.administration.migrate() == StoreMigration(from: 2, to: 2))
    #expect(try await rig.open().hash(of: Sample.account()) == hash)
    #expect(try rig.modes()["store.sqlite"] == 0o600)
  }

  @Test func aStoreOfTheFirstVersionIsBroughtForwardWithWhatIsInIt() async throws {
    _ = try await rig.administration.migrate()
    let store = try await rig.open()
    _ = try await store.recordSignIn(Sample.account(), at: Sample.time(1), tokens: [Sample.token()])
    await store.close()
    try rig.execute(
      """
      DROP TABLE own_revocation;
      ALTER TABLE account ADD COLUMN own_revocation_at INTEGER;
      PRAGMA user_version = 1;
      """)
    await expectRefusal(.notMigrated, "run `siwa store migrate`")
    #expect(try await rig.administration.migrate() == StoreMigration(from: 1, to: 2))
    let migrated = try await rig.open()
    #expect(try await migrated.tokens(of: Sample.account()).count == 1)
    #expect(try await migrated.ownRevocations(of: Sample.account()) == [])
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
    #expect(try rig.number("SELECT count(*) FROM store_key") == 1)
  }

  @Test func aMissingStoreNamesTheCommandThatMakesIt() async throws {
    await expectRefusal(.notMigrated, "`siwa store migrate` makes it")
    #expect(try rig.modes().keys.sorted() == ["master-key"], "looking for it must not make it")
    // An empty file is not one either.
    _ = rig.files.write("store.sqlite", "")
    await expectRefusal(.notMigrated, "run `siwa store migrate`")
    #expect(try await rig.administration.migrate() == StoreMigration(from: 0, to: 2))
  }

  @Test func aNewerStoreIsRefusedAndLeftAlone() async throws {
    await (try await rig.open()).close()
    try rig.execute("PRAGMA user_version = 99")
    await expectRefusal(.newerVersion, "version 99, and this program knows 2 at most")
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
