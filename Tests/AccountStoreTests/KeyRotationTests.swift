import AccountEvents
import EventLoop
import SQLite
import Synchronization
import TestSupport
import Testing

@testable import AccountStore

/// The master key is replaced: nothing is lost, nothing stops, and the old one opens nothing more.
@Loop @Suite struct KeyRotationTests {
  /// A database that a store was made in with `key`, and how it is got at with another.
  struct Rotated: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let make: @Loop @Sendable () async throws -> Access
  }

  @Loop
  struct Access {
    let key: MasterKey
    let open: @Loop (MasterKey) async throws -> any AccountStore
    let administration: @Loop (MasterKey) -> any AccountStoreAdministration
  }

  nonisolated static let all =
    [
      Rotated(testDescription: "SQLite") {
        let rig = try SQLiteRig()
        await (try await rig.open()).close()
        return Access(
          key: rig.key, open: { try await SQLiteAccountStore.open(rig.path, $0) },
          administration: { SQLiteStoreAdministration(rig.path, $0) })
      }
    ]
    + (PostgreSQLServer.programs == nil
      ? []
      : [
        Rotated(testDescription: "PostgreSQL") {
          let rig = try await PostgreSQLRig()
          await (try await rig.open()).close()
          return Access(
            key: rig.key, open: { try await PostgreSQLAccountStore.open(rig.connectionInfo, connections: 2, $0) },
            administration: { PostgreSQLStoreAdministration(rig.connectionInfo, $0) })
        }
      ])

  @Test(arguments: all)
  func allThatTheOldKeyWrappedIsWrappedWithTheNewOne(_ database: Rotated) async throws {
    let access = try await database.make()
    let old = try await access.open(access.key)
    try await old.fill(1...1201)
    let deletion = Sample.valid(EventID("deletion"))
    _ = try await old.requestDeletion(of: Sample.account(), in: Sample.client, as: deletion, at: Sample.time(9))
    let newest = try newMasterKey()
    let new = newest.replacing(access.key)
    // It runs with both keys from before the rotation until after it.
    let running = try await access.open(new)
    try await running.fill(1202...1203)

    let steps = Mutex<[Int]>([])
    let rotation = try await access.administration(new).rotateKey { step in steps.withLock { $0.append(step.done) } }
    #expect(rotation.accounts == 1201 && rotation.left == 0)
    #expect(steps.withLock { $0 } == [500, 1000, 1201])
    for number in [1, 1201, 1203] {
      let tokens = try await running.tokens(of: Sample.account(number))
      #expect(tokens.map(\.token) == [Sample.token(number)])
    }
    let again = try await access.administration(new).rotateKey { _ in }
    #expect(again == KeyRotation())
    await running.close()

    // Without the old key all is there; with it alone, nothing is.
    let last = try await access.open(newest)
    let waiting = try await last.takeOutbox(by: "a", at: Sample.time(9), until: Sample.time(10), after: nil, limit: 9)
    #expect(waiting?.records.map(\.id) == [deletion])
    await last.close()
    let report = try await access.administration(newest).verify { _ in }
    #expect(report.accounts == 1203 && report.findings == [])
    let store = try await access.open(newest)
    #expect(store.hash(of: Sample.account()) == old.hash(of: Sample.account()), "accounts keep their hashes")
    await store.close()
    let stale = await #expect(throws: AccountStoreError.self) { try await old.tokens(of: Sample.account()) }
    #expect(stale?.code == .wrongMasterKey)
    await old.close()
    let opening = await #expect(throws: AccountStoreError.self) { _ = try await access.open(access.key) }
    #expect(opening?.code == .wrongMasterKey)
  }

  /// What it added could not be opened once the old key is destroyed.
  @Test(arguments: all)
  func aProgramWithTheOldKeyAloneAddsNothingAnyMore(_ database: Rotated) async throws {
    let access = try await database.make()
    let old = try await access.open(access.key)
    try await old.fill(1...1)
    let new = try newMasterKey()
    _ = try await access.administration(new.replacing(access.key)).rotateKey { _ in }
    let error = await #expect(throws: AccountStoreError.self) { try await old.fill(2...3) }
    #expect(error?.code == .wrongMasterKey)
    await old.close()
    let report = try await access.administration(new).verify { _ in }
    #expect(report.accounts == 1 && report.findings == [])
  }

  @Test func whatIsAddedWhileItRunsIsReportedAsLeft() async throws {
    let rig = try SQLiteRig()
    let store = try await rig.open()
    try await store.fill(1...2)
    await store.close()
    let administration = SQLiteStoreAdministration(rig.path, try newMasterKey().replacing(rig.key))
    let path = rig.path
    // As if a program had added the first account only now.
    let rotation = try await administration.rotateKey { _ in
      do {
        let file = try Database(path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
        try file.execute(
          "UPDATE account SET master_key_id = 'another' WHERE hash = (SELECT min(hash) FROM account)")
      } catch {
        Issue.record(error)
      }
    }
    #expect(rotation.accounts == 2 && rotation.left == 1)
  }

  @Test func aRotationThatWasBrokenOffGoesOnWhereItWas() async throws {
    let rig = try SQLiteRig()
    let store = try await rig.open()
    try await store.fill(1...700)
    await store.close()
    let administration = SQLiteStoreAdministration(rig.path, try newMasterKey().replacing(rig.key))
    let damage: StaticString = """
      CREATE TABLE kept AS SELECT hash, data_key FROM account ORDER BY hash DESC LIMIT 1;
      UPDATE account SET data_key = zeroblob(60) WHERE hash = (SELECT hash FROM kept);
      """
    try rig.execute(damage)
    let error = await #expect(throws: AccountStoreError.self) { try await administration.rotateKey { _ in } }
    #expect(error?.code == .sealBroken)
    try rig.execute("UPDATE account SET data_key = kept.data_key FROM kept WHERE account.hash = kept.hash")
    let rotation = try await administration.rotateKey { _ in }
    #expect(rotation.accounts == 200 && rotation.left == 0)
    let report = try await administration.verify { _ in }
    #expect(report.accounts == 700 && report.findings == [])
  }
}
