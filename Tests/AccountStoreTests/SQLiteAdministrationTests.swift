import AccountEvents
import EventLoop
import SQLite
import Synchronization
import TestSupport
import Testing

@testable import AccountStore

/// Backups, and what `siwa store integrity` finds.
@Loop @Suite struct SQLiteAdministrationTests {
  private let rig: SQLiteRig
  private let now = Sample.time(10_000)

  init() throws { rig = try SQLiteRig() }

  private func settle(_ numbers: Range<Int>, in store: any AccountStore) async throws {
    let settlements = numbers.map {
      Sample.event("\($0)", of: Sample.account($0), at: 1)
        .settled(.setRelay(Sample.enabled(1, $0)))
    }
    _ = try await store.settle(settlements, at: now)
  }

  @Test func aBackupIsOfOneMomentAndCanBeOpened() async throws {
    let store = try await rig.open()
    try await settle(0..<1000, in: store)
    _ = try await store.recordSignIn(Sample.account(1), at: Sample.time(1), tokens: [Sample.token()])
    let path = rig.files.path + "/backup.sqlite"
    let seen = Mutex<[StoreProgress]>([])
    // Somebody writes all the while.
    async let writing: Void = settle(1000..<3000, in: store)
    let report = try await rig.administration.backUp(to: path) { progress in seen.withLock { $0.append(progress) } }
    try await writing
    #expect(report.findings == [] && report.tokens == 1)
    #expect([1000, 3000].contains(report.accounts))
    #expect([report.relays, report.settled] == [report.accounts, report.accounts])
    let stages = seen.withLock { $0 }
    #expect(stages.first?.stage == .copying && stages.last?.stage == .opening)
    #expect(stages.last?.done == report.accounts)

    let copy = try await SQLiteAccountStore.open(path, rig.key)
    #expect(try await copy.relayStates(of: [Sample.account(7)]) == [.known(Sample.enabled(1, 7))])
    #expect(try await copy.tokens(of: Sample.account(1)).map(\.token) == [Sample.token()])
    #expect(copy.hash(of: Sample.account()) == store.hash(of: Sample.account()))
    await copy.close()
    await store.close()
    #expect(
      try rig.modes() == ["backup.sqlite": 0o600, "master-key": 0o600, "store.sqlite": 0o600],
      "one file, of this user alone")
  }

  @Test func aBackupReplacesNothing() async throws {
    await (try await rig.open()).close()
    let path = rig.files.write("backup.sqlite", "what was there")
    let error = await #expect(throws: StoreBackupError.self) {
      try await rig.administration.backUp(to: path) { _ in }
    }
    #expect(error == .file(path, "is there already"))
    #expect(try rig.found(["what was there"]) == ["what was there"])
    // What a copy left that was broken off is in nobody's way.
    _ = rig.files.write("second.sqlite.partial", "half a copy")
    #expect(try await rig.administration.backUp(to: rig.files.path + "/second.sqlite") { _ in }.findings == [])
    #expect(try rig.modes()["second.sqlite.partial"] != nil, "nobody knows whether it is still being written")
  }

  @Test func aBackupCannotBeMadeOfWhatIsDamaged() async throws {
    let store = try await rig.open()
    try await settle(0..<10, in: store)
    await store.close()
    try rig.execute("UPDATE mail SET address = x'00'")
    let path = rig.files.path + "/backup.sqlite"
    let error = await #expect(throws: StoreBackupError.self) {
      try await rig.administration.backUp(to: path) { _ in }
    }
    guard case .store(let cause) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(cause.code == .damaged)
    #expect(try rig.modes().keys.sorted() == ["master-key", "store.sqlite"])
  }

  @Test(
    arguments: [
      (
        "DELETE FROM account WHERE hash = (SELECT min(hash) FROM account)",
        "a row of mail refers to one that is not there"
      ),
      (
        "UPDATE account SET team = 'Z9Z9Z9Z9Z9' WHERE hash = (SELECT min(hash) FROM account)",
        "the row belongs to another account"
      ),
      (
        "UPDATE account SET master_key_id = '' WHERE hash = (SELECT min(hash) FROM account)",
        "siwa data key is wrapped with master key , and "
      ),
    ] as [(StaticString, String)])
  func whatDoesNotFitIsFound(sql: StaticString, finding: String) async throws {
    let store = try await rig.open()
    try await settle(0..<10, in: store)
    await store.close()
    #expect(try await rig.administration.verify { _ in }.findings == [])
    try rig.execute(sql)
    let findings = try await rig.administration.verify { _ in }.findings
    #expect(findings.count == 1 && findings.first?.contains(finding) == true, "\(findings)")
  }

  @Test func damagedPagesAreFound() async throws {
    let store = try await rig.open()
    try await settle(0..<500, in: store)
    await store.close()
    var bytes = [UInt8](try rig.content())
    let middle = bytes.count / 2 / 4096 * 4096
    for offset in middle..<middle + 4096 * 8 where offset < bytes.count { bytes[offset] = 0x5a }
    _ = rig.files.write("store.sqlite", bytes)
    var findings: [String] = []
    do {
      findings = try await rig.administration.verify { _ in }.findings
    } catch {
      #expect(error.code == .damaged)
      findings = [error.detail]
    }
    #expect(!findings.isEmpty)
  }
}
