import AccountEvents
import EventLoop
import Foundation
import SQLite
import TestSupport
import Testing

@testable import AccountStore

/// Whoever has the file, and not the key.
@Loop @Suite struct SQLiteSealTests {
  private let rig: SQLiteRig
  private let now = Sample.time(10_000)

  init() throws { rig = try SQLiteRig() }

  @Test func aStolenDatabaseNamesNobody() async throws {
    let secrets = (1...20).flatMap {
      [Sample.account($0).subject.text, Sample.address($0).text, Sample.token($0).value.text]
    }
    let store = try await rig.open()
    try await store.fill(1...20)
    _ = try await store.requestDeletion(
      of: Sample.account(2), in: Sample.client, as: Sample.valid(EventID("asked-for")), at: now)
    #expect(try rig.found(secrets) == [])
    #expect(try rig.found(["email-relay"]) == ["email-relay"], "the bytes are those of the store")
    let deletion = Sample.event("d", of: Sample.account(1), at: 9)
    _ = try await store.settle([deletion.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now)
    #expect(try rig.found(secrets) == [])
    await store.close()
    #expect(try rig.found(secrets) == [])
    #expect(try rig.modes().allSatisfy { $0.value == 0o600 })
  }

  @Test func anErasureLeavesAHashAndTheFence() async throws {
    let store = try await rig.open()
    try await store.fill(1...2)
    let sealed = try wrappedKeysAndAddresses()
    #expect(sealed.count == 4)
    let deletion = Sample.event("d", of: Sample.account(1), at: 9)
    _ = try await store.settle([deletion.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now)
    for table in [
      "SELECT count(*) FROM account", "SELECT count(*) FROM mail", "SELECT count(*) FROM token",
      "SELECT count(*) FROM erasure_fence",
    ] as [StaticString] { #expect(try rig.number(table) == 1, "\(table)") }
    // Not the wrapped key either, in any file: neither in a free page nor in the log.
    let left = try wrappedKeysAndAddresses()
    #expect(left.count == 2)
    let content = try rig.content()
    for value in sealed { #expect((content.range(of: Data(value)) != nil) == left.contains(value)) }
    await store.close()
  }

  @Test func whatAnErasureSparesIsSealedAnew() async throws {
    let store = try await rig.open()
    try await store.fill(1...1)
    let sealed = try wrappedKeysAndAddresses()
    let early = Sample.event("early", of: Sample.account(1), at: 1)
    _ = try await store.settle([early.settled(by: Sample.eraser, .eraseAccount(isFinal: false))], at: now)
    #expect(try await store.relayStates(of: [Sample.account(1)]) == [.known(Sample.enabled(2))])
    #expect(try await store.tokens(of: Sample.account(1)) == [], "of the very moment")
    let anew = try wrappedKeysAndAddresses()
    #expect(anew.count == 2 && Set(anew).isDisjoint(with: sealed))
    let content = try rig.content()
    for value in sealed { #expect(content.range(of: Data(value)) == nil) }
    await store.close()
    #expect(try await rig.administration.verify { _ in }.findings == [])
  }

  private func wrappedKeysAndAddresses() throws -> [[UInt8]] {
    var values: [[UInt8]] = []
    try Database(rig.path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300)).prepare(
      "SELECT data_key FROM account UNION ALL SELECT address FROM mail"
    ).forEach { row throws(SQLiteError) in values.append(try row.value(0)) }
    return values
  }

  @Test func anotherMasterKeyIsRefused() async throws {
    await (try await rig.open()).close()
    let other = try newMasterKey()
    let error = await #expect(throws: AccountStoreError.self) {
      try await SQLiteAccountStore.open(rig.path, other)
    }
    #expect(error?.code == .wrongMasterKey && error?.isTransient == false)
    #expect(error?.detail.contains(rig.key.id) == true && error?.detail.contains(other.id) == true)
    let migration = await #expect(throws: AccountStoreError.self) {
      try await SQLiteStoreAdministration(rig.path, other).migrate()
    }
    #expect(migration?.code == .wrongMasterKey)
    // With the other's id written over it, what is wrapped still does not open.
    let database = try Database(rig.path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    try database.prepare("UPDATE hash_key SET master_key_id = ?").run(other.id)
    let forged = await #expect(throws: AccountStoreError.self) {
      try await SQLiteAccountStore.open(rig.path, other)
    }
    #expect(forged?.code == .sealBroken)
  }

  @Test(
    arguments: [
      // Somebody else's address; with their key too; a token as another's.
      "UPDATE mail SET address = (SELECT address FROM mail AS other WHERE other.hash <> mail.hash)",
      "UPDATE account SET data_key = (SELECT data_key FROM account AS other WHERE other.hash <> account.hash)",
      """
      UPDATE account SET data_key = (SELECT data_key FROM account AS other WHERE other.hash <> account.hash);
      UPDATE mail SET address = (SELECT address FROM mail AS other WHERE other.hash <> mail.hash);
      UPDATE token SET value = (SELECT value FROM token AS other WHERE other.hash <> token.hash);
      """,
      "UPDATE token SET value = (SELECT value FROM token AS other WHERE other.hash <> token.hash)",
      "UPDATE token SET kind = 'access'",
      "UPDATE token SET client = 'com.example.other'",
      "UPDATE token SET value = (SELECT address FROM mail WHERE mail.hash = token.hash)",
      "UPDATE account SET subject = (SELECT subject FROM account AS other WHERE other.hash <> account.hash)",
    ] as [StaticString])
  func whatWasMovedDoesNotOpen(sql: StaticString) async throws {
    let store = try await rig.open()
    try await store.fill(1...2)
    try rig.execute(sql)
    // What reads it refuses it, and `siwa store integrity` finds it.
    var codes: Set<AccountStoreError.Code> = []
    for account in [Sample.account(1), Sample.account(2)] {
      do { _ = try await store.tokens(of: account) } catch { codes.insert(error.code) }
      do { _ = try await store.relayStates(of: [account]) } catch { codes.insert(error.code) }
    }
    await store.close()
    // The subject is read by nobody else.
    #expect(codes == ("\(sql)".contains("subject") ? [] : [.sealBroken]))
    let report = try await rig.administration.verify { _ in }
    #expect(!report.findings.isEmpty && report.findings.allSatisfy { $0.contains("the seal is broken") })
  }

  /// What cannot be opened must not be written over either, as though there had been nothing.
  @Test func aBrokenKeyStopsWhatNeedsIt() async throws {
    let store = try await rig.open()
    try await store.fill(1...2)
    try rig.execute("UPDATE account SET data_key = randomblob(60)")
    let other = Sample.event("x", of: Sample.account(3), at: 5).settled(
      .setRelay(Sample.enabled(5)))
    let broken = Sample.event("y", of: Sample.account(1), at: 5).settled(.removeRelay, .setRelay(Sample.disabled(5)))
    let error = await #expect(throws: AccountStoreError.self) { try await store.settle([other, broken], at: now) }
    #expect(error?.code == .sealBroken)
    // Nothing of it has happened, not even what could have.
    #expect(
      try await store.standings(of: [other.event, broken.event], for: Sample.relay)
        == [.open(FailedAttempts()), .open(FailedAttempts())])
    #expect(try await store.relayStates(of: [Sample.account(3)]) == [.unknown])
    #expect(try rig.number("SELECT count(*) FROM mail") == 2)
    #expect(try await store.settle([other], at: now) == [.applied])
    await store.close()
  }
}
