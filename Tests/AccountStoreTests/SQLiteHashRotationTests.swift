import AccountEvents
import EventLoop
import Foundation
import Glibc
import SQLite
import TestSupport
import Testing

@testable import AccountStore

/// What a rotation of the hashing key leaves in the file, and what becomes of it where processes are killed.
@Loop @Suite(.serialized) struct SQLiteHashRotationTests {
  private let rig: SQLiteRig
  private let now = Sample.time(10_000)

  init() throws { rig = try SQLiteRig() }

  @Test func noFormerHashIsLeftInTheFile() async throws {
    let store = try await rig.open()
    try await Population.settle(in: store)
    try await store.fill(10...12)
    // All that the rows bear, whoever wrote it.
    let former = try bytesUnderTheKey()
    #expect(Set(former).count > Population.accounts.count)
    let content = try rig.content()
    for hash in former { #expect(content.range(of: Data(hash)) != nil) }

    _ = try await rig.administration.rotateHashKey(to: try newHashKey()) { _ in }
    // Another program's log may hold it until that one writes, or looks whether it can.
    try await store.check()
    let left = try rig.content()
    for hash in former { #expect(left.range(of: Data(hash)) == nil) }
    #expect(try Set(bytesUnderTheKey()).count == Set(former).count)
    await store.close()
  }

  /// Hashes and fingerprints.
  private func bytesUnderTheKey() throws -> [[UInt8]] {
    var found: [[UInt8]] = []
    try Database(rig.path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300)).prepare(
      """
      SELECT hash FROM account UNION ALL SELECT hash FROM token UNION ALL SELECT hash FROM mail
      UNION ALL SELECT hash FROM ledger UNION ALL SELECT hash FROM event_fence UNION ALL SELECT hash FROM erasure_fence
      UNION ALL SELECT hash FROM ended_authorization UNION ALL SELECT hash FROM own_revocation
      UNION ALL SELECT hash FROM erasure_progress UNION ALL SELECT fingerprint FROM token
      """
    ).forEach { row throws(SQLiteError) in found.append(try row.value(0)) }
    return found
  }

  /// One that was there before the store was brought forward, and knows the first key alone.
  @Test func aProgramOfTheVersionBeforeStops() async throws {
    let database = try Database(rig.path, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    for step in SQLiteMigrations.steps[..<3] { try database.execute(step) }
    let first = try StoreKeys.make(for: rig.key)
    try database.prepare("INSERT INTO store_key (number, master_key_id, hash_key) VALUES (1, ?, ?)").run(
      first.masterKeyID, first.key)
    // As it asked how an event stands, and what mailers may do.
    let question = try database.prepare("SELECT (SELECT at FROM erasure WHERE hash = ?1)")
    // And as it recorded a step of an erasure.
    let step = try database.prepare(
      """
      INSERT INTO erasure_step (event_id, target, hash, state, detail, at) VALUES (?2, 'shop', ?1, 'begun', '', 1)
      ON CONFLICT (event_id, target) DO UPDATE SET hash = excluded.hash
      """)
    let hash = [UInt8](repeating: 1, count: 32)
    try question.run(hash)
    try step.run(hash, "before")
    _ = try await rig.administration.migrate()
    for attempt in [{ try question.run(hash) }, { try step.run(hash, "after") }] {
      let error = #expect(throws: SQLiteError.self) { try attempt() }
      #expect(error?.code == .other || error?.code == .schema)
    }
    #expect(try rig.number("SELECT count(*) FROM erasure_progress") == 1)
  }

  @Test(.timeLimit(.minutes(30)))
  func whereverARotationIsKilledTheNextOneBringsItToItsEnd() async throws {
    let store = try await rig.open()
    let erased = (0..<700).map { Sample.account($0) }
    let erasures = erased.enumerated().map { Sample.event("erasure-\($0)", of: $1, at: 100, severity: 1) }
    _ = try await store.settle(erasures.map { $0.settled(.eraseAccount(isFinal: true)) }, at: now)
    _ = try await store.settle(
      (1000..<1600).map {
        Sample.event("mail-\($0)", of: Sample.account($0), at: 1).settled(.setRelay(Sample.enabled(1)))
      },
      at: now)
    func look() async throws {
      let late = stride(from: 0, to: 700, by: 13).map { Sample.event("late", of: erased[$0], at: 50) }
      #expect(try await store.standings(of: late, for: Sample.relay).allSatisfy { $0 == .superseded(.newerEvent) })
      let people = stride(from: 1000, to: 1600, by: 13).map { Sample.account($0) }
      #expect(try await store.relayStates(of: people).allSatisfy { $0 == .known(Sample.enabled(1)) })
      #expect(try await rig.administration.verify { _ in }.findings == [])
    }
    func rotate(_ step: Int) async throws -> RunningProgram.End {
      try await RunningProgram.run("durable-writer", ["rotate", rig.files.path, "\(step)"]) { program in
        let end = try await program.untilEnd()
        #expect(program.errors == "")
        return end
      }
    }
    // By itself: before it has moved anything, and then after each page.
    try newKeyFile()
    var kills = 0
    while try await rotate(kills == 0 ? 1 : 2) == .signal(SIGKILL) {
      kills += 1
      #expect(try await rig.administration.verify { _ in }.isMoving)
      try await look()
    }
    #expect(kills > 6)
    try await look()

    // By somebody else, in the midst of a page.
    try newKeyFile()
    var random = SeededRandom()
    for _ in 0..<6 {
      try await RunningProgram.run("durable-writer", ["rotate", rig.files.path, "0"]) { program in
        for _ in 0..<Int.random(in: 0...3000, using: &random) { await Task.yield() }
        await program.kill()
      }
      try await look()
    }
    #expect(try await rotate(0) == .exit(0))
    try await look()
    #expect(try await !rig.administration.verify { _ in }.isMoving)
    #expect(store.hashes(of: erased[0]).count == 3)
    await store.close()
  }

  /// Several processes settle the same events, each with hashes that it has made at some time, while another one rotates.
  @Test(.timeLimit(.minutes(30)))
  func processesSettleOnWhileAnotherOneRotates() async throws {
    let store = try await rig.open()
    _ = try await store.settle(
      (0..<1600).map {
        Sample.event("old-\($0)", of: person($0), at: 1).settled(by: Sample.revoker, .removeRelay)
      }, at: now)
    try newKeyFile()
    var words = [["compete", rig.files.path, "1600"], ["compete", rig.files.path, "1600"]]
    words.append(["rotate", rig.files.path, "0"])
    let lines = try await withThrowingTaskGroup(of: String.self) { group in
      for words in words {
        group.addTask(executorPreference: Loop.executor) {
          try await RunningProgram.run("durable-writer", words) { program in
            let line = try await program.outputLine(with: words[0] == "rotate" ? "rotated" : "applied ")
            #expect(program.errors == "")
            return line
          }
        }
      }
      var lines: [String] = []
      for try await line in group { lines.append(line) }
      return lines
    }
    let applied = lines.compactMap { Int($0.dropFirst("applied ".count)) }
    #expect(applied.count == 2 && applied.reduce(0, +) == 1600, "\(lines)")
    let report = try await rig.administration.verify { _ in }
    #expect(report.findings == [] && !report.isMoving)
    #expect(report.accounts == 1600 && report.relays == 1600 && report.settled == 3200)
    #expect(try rig.number("SELECT count(DISTINCT hash) FROM ledger") == 1600)
    #expect(try rig.number("SELECT count(DISTINCT hash) FROM event_fence") == 1600)
    await store.close()
  }

  /// As `durable-writer` names them.
  private func person(_ number: Int) -> Account {
    Account(team: Sample.account().team, subject: Sample.valid(AppleSubject("person-\(number)")))
  }

  private func newKeyFile() throws {
    let path = rig.files.path + "/hash-key"
    if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    _ = rig.files.write("hash-key", try MasterKey.newText())
  }
}
