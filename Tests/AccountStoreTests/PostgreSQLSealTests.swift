import AccountEvents
import EventLoop
import TestSupport
import Testing

@testable import AccountStore

/// Whoever has the database, and not the key.
@Loop @Suite(PostgreSQLServer.isThere) struct PostgreSQLSealTests {
  private let rig: PostgreSQLRig
  private let now = Sample.time(10_000)

  init() async throws { rig = try await PostgreSQLRig() }

  /// As text, and as `bytea` stands in a dump.
  private func forms(of text: String) -> [String] {
    [text, text.utf8.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()]
  }

  @Test func aStolenDatabaseNamesNobody() async throws {
    let store = try await rig.open()
    try await store.fill(1...20)
    let dump = try await rig.dump()
    for number in 1...20 {
      for secret in [
        Sample.account(number).subject.text, Sample.address(number).text, Sample.token(number).value.text,
      ] {
        for form in forms(of: secret) { #expect(!dump.contains(form), "\(secret)") }
      }
    }
    let hash = store.hash(of: Sample.account(1)).description
    #expect(dump.contains("email-relay") && dump.contains(hash), "the text is that of the store")
    await store.close()
  }

  @Test func noFormerHashIsLeftAfterARotation() async throws {
    let store = try await rig.open()
    try await Population.settle(in: store)
    try await store.fill(10...12)
    func bytesUnderTheKey() async throws -> Set<Substring> {
      let sql = """
        SELECT encode(hash, 'hex') FROM (
          SELECT hash FROM siwa.account UNION SELECT hash FROM siwa.token UNION SELECT hash FROM siwa.relay
          UNION SELECT hash FROM siwa.ledger UNION SELECT hash FROM siwa.fence UNION SELECT hash FROM siwa.erasure_fence
          UNION SELECT hash FROM siwa.ended_authorization UNION SELECT hash FROM siwa.own_revocation
          UNION SELECT hash FROM siwa.erasure_step UNION SELECT hash FROM siwa.guard
          UNION SELECT fingerprint FROM siwa.token
        ) AS found (hash)
        """
      return Set(try await rig.run(sql).split(separator: "\n"))
    }
    let former = try await bytesUnderTheKey()
    #expect(former.count > Population.accounts.count)
    _ = try await rig.administration.rotateHashKey(to: try newHashKey()) { _ in }
    let left = try await bytesUnderTheKey()
    #expect(left.count == former.count && left.isDisjoint(with: former))
    let dump = try await rig.dump()
    for hash in former { #expect(!dump.contains(hash)) }
    await store.close()
  }

  @Test func anErasureLeavesAHashAndTheFence() async throws {
    let store = try await rig.open()
    try await store.fill(1...2)
    let deletion = Sample.event("d", of: Sample.account(1), at: 9)
    _ = try await store.settle([deletion.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now)
    for table in ["account", "relay", "token", "erasure_fence"] {
      #expect(try await rig.run("SELECT count(*) FROM siwa.\(table)") == "1", "\(table)")
    }
    await store.close()
  }

  @Test func whatAnErasureSparesIsSealedAnew() async throws {
    let store = try await rig.open()
    try await store.fill(1...1)
    func sealed() async throws -> [Substring] {
      try await rig.run("SELECT data_key FROM siwa.account UNION ALL SELECT address FROM siwa.relay").split(
        separator: "\n")
    }
    let before = try await sealed()
    let early = Sample.event("early", of: Sample.account(1), at: 1)
    _ = try await store.settle([early.settled(by: Sample.eraser, .eraseAccount(isFinal: false))], at: now)
    #expect(try await store.relayStates(of: [Sample.account(1)]) == [.known(Sample.enabled(2))])
    let after = try await sealed()
    #expect(after.count == 2 && Set(after).isDisjoint(with: before))
    await store.close()
    #expect(try await rig.administration.verify { _ in }.findings == [])
  }

  @Test func whatWasMovedDoesNotOpen() async throws {
    let store = try await rig.open()
    try await store.fill(1...3)
    var report = try await rig.administration.verify { _ in }
    var expected = StoreReport()
    (expected.accounts, expected.tokens, expected.relays, expected.settled) = (3, 3, 3, 3)
    #expect(report == expected)

    let (first, second) = (store.hash(of: Sample.account(1)), store.hash(of: Sample.account(2)))
    try await rig.run(
      "UPDATE siwa.relay SET address = (SELECT address FROM siwa.relay WHERE hash = '\\x\(first)') WHERE hash = '\\x\(second)'"
    )
    let error = await #expect(throws: AccountStoreError.self) {
      try await store.relayStates(of: [Sample.account(2)])
    }
    #expect(error?.code == .sealBroken)
    report = try await rig.administration.verify { _ in }
    #expect(report.findings == ["account \(second): siwa address: the seal is broken"])
    await store.close()
  }

  @Test func aBackupIsMadeWithPostgreSQLsOwnMeans() async throws {
    let error = await #expect(throws: StoreBackupError.self) {
      try await rig.administration.backUp(to: "/nowhere") { _ in }
    }
    #expect(error?.description.contains("pg_dump") == true)
  }
}
