import AccountEvents
import Cryptography
import EventLoop
import TestSupport
import Testing

@testable import AccountStore

/// The form of the database: made once, brought forward, never guessed.
@Loop @Suite(PostgreSQLServer.isThere) struct PostgreSQLMigrationTests {
  private let rig: PostgreSQLRig

  init() async throws { rig = try await PostgreSQLRig() }

  /// A step that somebody has run is never changed; a new form gets a new step, and a new line here.
  @Test func theStepsAreFrozen() {
    #expect(
      PostgreSQLMigrations.steps.map { SHA256.digest(of: Array($0.description.utf8)).description } == [
        "2e654933f2f40a2fc985f306c7fcbb129b4faee9adf029b4bfb25dcda95889ce",
        "c29b905c5e66769e260e14e0a234cd55578ccb716e16454df7cbc4eae9fedf11",
        "76a3e8c48348fff490705377eb735ad57e54fb833249de1ba3ca424f17abd4d3",
        "9ad44c0da2cfa3a17d8ac7df460d87879b2e269d1ae9e599896b9359a79cb390",
        "7e9e7e7e4955cbcd0bdfbb52a7de14cd6ce3fc7ecfd795071299ff24c8070013",
        "9aca01ae7906b931bd56af9c0f0005a4b97997fa2cd8244003ff404d58c4738d",
        "9c2482c4dfe8d1220d984e1b01f1d42a6ca2cdd20aa1c6d16101864accf7b728",
        "fe172fccf45b707de452e44eacba114a43239ac283b4a715da61989b7af21c6b",
      ])
  }

  @Test func aStoreIsMadeOnceAndKept() async throws {
    #expect(try await rig.administration.begin())
    let hash = try await rig.open().hash(of: Sample.account())
    #expect(try await rig.administration.migrate() == StoreMigration(from: 8, to: 8))
    #expect(try await !rig.administration.begin())
    #expect(try await rig.open().hash(of: Sample.account()) == hash)
  }

  @Test func anOlderStoreIsBroughtForwardWithWhatIsInIt() async throws {
    try await makeOldStore()
    await expectRefusal(.notMigrated, "run `siwa store migrate`")
    // What waits to be announced, this version would not announce.
    try await rig.run("INSERT INTO siwa.announcement VALUES (7, 'email-relay', 3, '')")
    let refusal = await #expect(throws: AccountStoreError.self) { try await rig.administration.migrate() }
    #expect(refusal?.code == .failed && refusal?.detail.contains("not made yet (1)") == true)
    #expect(try await rig.run("SELECT max(version) FROM siwa.migration") == "1")
    try await rig.run("DELETE FROM siwa.announcement")
    #expect(try await rig.administration.migrate() == StoreMigration(from: 1, to: 8))

    let store = try await rig.open()
    #expect(try await store.tokens(of: Sample.account()).map(\.token) == [Sample.token()])
    try await OldStore.expectItsLedgerIsAnnounced(in: store)
    await store.close()
    #expect(try await rig.administration.verify { _ in }.findings == [])
  }

  /// A store as a program of the first version has made it, with a token and a settled event.
  private func makeOldStore() async throws {
    let (old, event) = (try OldStore(rig.key), OldStore.event)
    func bytes(_ bytes: [UInt8]) -> String {
      "'\\x" + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() + "'"
    }
    let hash = bytes(old.account.hash.bytes)
    try await rig.run("CREATE SCHEMA siwa; " + PostgreSQLMigrations.steps[0].description)
    try await rig.run(
      """
      INSERT INTO siwa.migration (version) VALUES (1);
      INSERT INTO siwa.store_key VALUES (1, '\(rig.key.id)', \(bytes(old.hashKey)), '');
      INSERT INTO siwa.account (hash, team, subject, master_key_id, data_key) VALUES
        (\(hash), '\(old.account.team)', \(bytes(old.account.subject)), '\(rig.key.id)', \(bytes(old.account.key.bytes)));
      INSERT INTO siwa.token (hash, fingerprint, kind, client, issued_at, value) VALUES
        (\(hash), sha256(''), 'refresh', '\(Sample.client)', \(Sample.time(1).milliseconds), \(bytes(old.token)));
      INSERT INTO siwa.ledger VALUES
        ('email-relay', '\(event.id)', \(hash), 'done', \(Sample.time(2).milliseconds), '\(event.origin.topic)',
        \(event.origin.partition), \(event.origin.offset));
      """)
  }

  @Test func whoeverBeginsAStoreAtOnceOneMakesIt() async throws {
    #expect(try await rig.administration.beginAtOnce(8) == (1, 8))
    #expect(try await rig.run("SELECT count(*) FROM siwa.hash_key") == "1")
  }

  @Test func aMissingStoreNamesTheCommandThatMakesIt() async throws {
    await expectRefusal(.notMigrated, StoreBeginning.words)
    // A schema that somebody else has made for it is one without a store, too.
    try await rig.run("CREATE SCHEMA siwa")
    await expectRefusal(.notMigrated, StoreBeginning.words)
    await rig.administration.expectNoneToMigrate()
    #expect(try await rig.administration.begin())
  }

  @Test func aNewerStoreIsRefusedAndLeftAlone() async throws {
    await (try await rig.open()).close()
    try await rig.run("INSERT INTO siwa.migration (version) VALUES (99)")
    await expectRefusal(.newerVersion, "version 99, and this program knows 8 at most")
    let error = await #expect(throws: AccountStoreError.self) { try await rig.administration.migrate() }
    #expect(error?.code == .newerVersion)
    #expect(try await rig.run("SELECT max(version) FROM siwa.migration") == "99")
  }

  @Test func aSchemaOfSomethingElseIsRefusedAndLeftAlone() async throws {
    try await rig.run("CREATE SCHEMA siwa; CREATE TABLE siwa.somebody (name text)")
    await expectRefusal(.damaged, "is something else's")
    for change in [{ _ = try await rig.administration.migrate() }, { _ = try await rig.administration.begin() }] {
      let error = await #expect(throws: AccountStoreError.self) { try await change() }
      #expect(error?.code == .damaged)
    }
    #expect(try await rig.run("SELECT tablename FROM pg_tables WHERE schemaname = 'siwa'") == "somebody")
  }

  @Test func anotherKeyIsRefused() async throws {
    await (try await rig.open()).close()
    let other = try newMasterKey()
    let opening = await #expect(throws: AccountStoreError.self) {
      try await PostgreSQLAccountStore.open(rig.connectionInfo, connections: 1, other)
    }
    let migration = await #expect(throws: AccountStoreError.self) {
      try await PostgreSQLStoreAdministration(rig.connectionInfo, other).migrate()
    }
    #expect(opening?.code == .wrongMasterKey && migration?.code == .wrongMasterKey)
  }

  @Test func whoMayNotWriteIsTold() async throws {
    await (try await rig.open()).close()
    try await rig.run(
      """
      GRANT USAGE ON SCHEMA siwa TO guarded;
      GRANT SELECT ON ALL TABLES IN SCHEMA siwa TO guarded;
      """)
    let info = rig.connectionInfo.replacing("user=postgres", with: "user=guarded password=correct")
    let store = try await PostgreSQLAccountStore.open(info, connections: 1, rig.key)
    let error = await #expect(throws: AccountStoreError.self) { try await store.check() }
    #expect(error?.code == .failed && error?.isTransient == false)
    await store.close()
  }

  @Test func aServerThatWouldForgetIsRefused() async throws {
    await (try await rig.open()).close()
    try await rig.run(
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$")
    await expectRefusal(.failed, "it would forget what was committed")
  }

  @Test func aServerThatComesLaterAndWouldForgetIsNotWell() async throws {
    let store = try await rig.open()
    try await store.check()
    try await rig.run(
      """
      DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$;
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid();
      """)
    var failure: AccountStoreError?
    try await until {
      do throws(AccountStoreError) { try await store.check() } catch { failure = error }
      return failure?.code == .failed
    }
    #expect(failure?.detail.hasSuffix("it would forget what was committed") == true)
    await store.close()
  }

  /// Before an event needs it.
  @Test func aRightThatIsMissingIsNamed() async throws {
    await (try await rig.open()).close()
    let user = "programs_\(UInt64.random(in: 0 ... .max))"
    try await rig.run(
      """
      CREATE ROLE \(user) LOGIN; GRANT USAGE ON SCHEMA siwa TO \(user);
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA siwa TO \(user);
      REVOKE INSERT, DELETE ON siwa.hash_key FROM \(user);
      REVOKE INSERT, UPDATE, DELETE ON siwa.migration FROM \(user);
      GRANT USAGE ON SEQUENCE siwa.erasure_step_number TO \(user);
      """)
    let store = try await PostgreSQLAccountStore.open("\(rig.connectionInfo) user=\(user)", connections: 2, rig.key)
    try await store.check()
    for (right, object) in [("INSERT", "ledger"), ("DELETE", "token"), ("USAGE", "erasure_step_number")] {
      let kind = right == "USAGE" ? "SEQUENCE" : "TABLE"
      try await rig.run("REVOKE \(right) ON \(kind) siwa.\(object) FROM \(user)")
      let error = await #expect(throws: AccountStoreError.self) { try await store.check() }
      #expect(error?.detail == "the programs' user has no right to \(right) on siwa.\(object)")
      try await rig.run("GRANT \(right) ON \(kind) siwa.\(object) TO \(user)")
      try await store.check()
    }
    await store.close()
    try await rig.run("DROP OWNED BY \(user); DROP ROLE \(user)")
  }

  private func expectRefusal(
    _ code: AccountStoreError.Code, _ words: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    let error = await #expect(throws: AccountStoreError.self, sourceLocation: sourceLocation) {
      try await PostgreSQLAccountStore.open(rig.connectionInfo, connections: 1, rig.key)
    }
    #expect(error?.code == code, "\(error?.detail ?? "")", sourceLocation: sourceLocation)
    #expect(error?.detail.hasSuffix(words) == true, "\(error?.detail ?? "")", sourceLocation: sourceLocation)
    #expect(error?.isTransient == false, sourceLocation: sourceLocation)
  }
}
