import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Foundation
import SQLite
import TestSupport
import Testing

/// The data eraser, killed at every step that it makes, with a database of an application's and a service as its targets.
@Loop @Suite(.timeLimit(.minutes(30))) struct KilledEraserTests {
  @Test(Python.isThere) func whereverItIsKilledEverybodyIsErasedOnceAndNobodyElse() async throws {
    let script = Repository.root + "/Tests/AccountServicesTests/Python/erasure_service.py"
    try await RunningProgram.run(
      path: Python.interpreter, [script, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
    ) { service in
      try await until { service.output.contains("\n") }
      let port = try #require(service.output.split(separator: "\n").first.flatMap { Int($0) })
      var step = 1
      while try await isKilled(at: step, service, port) { step += 1 }
      #expect(step > 60, "there are fewer steps than there should be")
    }
  }

  private func isKilled(at step: Int, _ service: RunningProgram, _ port: Int) async throws -> Bool {
    let directory = TemporaryDirectory()
    let masterKey = try #require(MasterKey([UInt8](repeating: 7, count: 32)))
    let path = "\(directory.path)/siwa.db"
    _ = directory.write("service", "http://127.0.0.1:\(port)/\(step)/erased")
    try await SQLiteAccountStore.begin(path, masterKey)
    var store = try await SQLiteAccountStore.open(path, masterKey)
    let ada = AccountEvent.sample(0).account
    _ = try await store.recordSignIn(ada, at: AccountEvent.sample(0).occurredAt, tokens: [])
    await store.close()
    let shop = try Database("\(directory.path)/shop.sqlite", .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
    try shop.execute(
      """
      CREATE TABLE customer (sub TEXT NOT NULL);
      INSERT INTO customer VALUES ('ada'), ('ada'), ('bob'), ('cleo'), ('dan')
      """)

    let end = try await run(directory, at: step)
    guard end != .exit(0) else { return false }
    let comment: Comment = "killed at \(step)"
    #expect(end == .signal(SIGKILL), comment)
    #expect(try await run(directory, at: 0) == .exit(0), comment)

    #expect(try names(in: shop) == ["dan"], comment)
    let orders = orders(service, at: step)
    for number in [1, 3, 4] {
      #expect(1...2 ~= orders.count { $0.contains(#""event-\#(number).newsletter""#) }, comment)
    }
    #expect(orders.count <= 5, "one of each account was under way, \(comment)")
    let lines = try String(contentsOfFile: "\(directory.path)/said", encoding: .utf8).split(separator: "\n")
    let said = try lines.map { line in
      let outcome = try AccountOutcome(
        decoding: Array(try #require(line.split(separator: " ", maxSplits: 1).last).utf8))
      return "\(outcome.cause.id) \(outcome.name.rawValue) "
        + outcome.targets.map { "\($0.name) \($0.state) \($0.after ?? -1)" }.joined(separator: ", ")
    }
    let whole = "account-erased shop erased 0, newsletter erased 0, account-store erased -1"
    let expected = [
      "event-1 \(whole)", "event-2 account-erased shop erased 0", "event-3 \(whole)", "event-4 \(whole)",
    ]
    #expect(Set(said) == Set(expected), "\(said), \(comment)")
    for text in expected { #expect(said.count { $0 == text } <= 2, comment) }
    #expect(try String(contentsOfFile: "\(directory.path)/committed", encoding: .utf8) == "4\n", comment)
    store = try await SQLiteAccountStore.open(path, masterKey)
    #expect(try await store.openErasures(by: .dataEraser, after: nil, limit: 10) == [], comment)
    let erased = try await store.relayStates(of: [ada])
    #expect(erased == [.erased(since: AccountEvent.sample(4).occurredAt)], comment)
    await store.close()
    return true
  }

  private func run(_ directory: TemporaryDirectory, at step: Int) async throws -> RunningProgram.End {
    try await RunningProgram.run("killed-consumer", [directory.path, String(step), "eraser"], [:]) { program in
      try await program.untilEnd()
    }
  }

  /// What the service was asked for, one line each. It may be slow to say what was asked of it at an earlier step.
  private func orders(_ service: RunningProgram, at step: Int) -> [Substring] {
    service.output.split(separator: "\n").filter { $0.contains(#""path": "/\#(step)/"#) }
  }

  private func names(in shop: Database) throws -> [String] {
    var names: [String] = []
    try shop.prepare("SELECT sub FROM customer").forEach { row throws(SQLiteError) in names.append(try row.value(0)) }
    return names
  }
}
