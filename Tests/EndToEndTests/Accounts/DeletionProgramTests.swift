import AccountEvents
import AccountServices
import AccountStore
import AppleID
import AppleSimulator
import EventLoop
import Foundation
import TestSupport
import Testing

/// The app's own button: from the person's word to the end of the authorization and the erasure, by the built programs.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct DeletionProgramTests {
  @Test func aDeletionAskedForInTheAppIsRevokedThenErasedAndAnsweredForAfterwards() async throws {
    try await run(ConsumerStage.Form())
  }

  @Test(PostgreSQLServer.isThere)
  func theSameWithTheStoreInPostgreSQL() async throws {
    try await run(ConsumerStage.Form(postgreSQL: try await PostgreSQLServer.shared().makeDatabase()))
  }

  private func run(_ form: ConsumerStage.Form) async throws {
    try await ConsumerStage.run(form) { stage, simulator in
      try await Button(stage, simulator).isPressed()
    }
  }
}

/// What the app's server does.
@Loop
private final class Button {
  private static let auditLog = "https://audit.example.com/siwa"

  private let stage: ConsumerStage
  private let simulator: SimulatorProgram
  private let (ada, bob) = (Person(named: "ada"), Person(named: "bob"))
  private var answers: [AccountsStage.Answer] = []

  init(_ stage: ConsumerStage, _ simulator: SimulatorProgram) { (self.stage, self.simulator) = (stage, simulator) }

  func isPressed() async throws {
    let token = try await stage.signIn(ada, code: try await simulator.signIn("ada"), at: .now - .seconds(3600))
    // Of him no token was ever kept.
    _ = try await stage.store.recordSignIn(try ConsumerStage.account(bob), at: .now - .seconds(3600), tokens: [])
    try stage.shop.welcome([ada, bob])

    // Kafka is away, and then the program is killed: what was asked for is kept.
    var accounts = try await start(["SIWA_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"])
    let id = try await account(ada, accounts)
    let fresh = try await ask(accounts, "POST", "/v1/accounts/{id}/access-token", id)
    #expect(fresh.status == 200 && fresh.text.contains(#""accessToken""#) && !fresh.text.contains(token.text))
    let asked = try await ask(accounts, "DELETE", "/v1/accounts/{id}", id)
    let deletion = try #require(try asked.text.object["id"] as? String)
    #expect(asked.status == 202 && asked.location == "/v1/deletions/\(deletion)", "\(asked)")
    #expect(asked.text.contains(#""state":"requested""#) && !asked.text.contains("endByHand"), "\(asked.text)")
    #expect(!asked.text.contains(ada.subject))
    #expect(try await ask(accounts, "DELETE", "/v1/accounts/{id}", id).text == asked.text)
    let refused = try await ask(accounts, "POST", "/v1/accounts/{id}/access-token", id)
    #expect(refused.status == 409 && refused.text.contains("authorization-ended"), "\(refused.text)")
    try await until { try await accounts.administration.metric("siwa_outbox_waiting") == 1 }
    try await until {
      let ready = try await accounts.administration.get("/readyz")
      return ready.status == 200 && ready.text.contains("kafka: replaced") && ready.text.contains("1 events wait")
    }
    await accounts.program.kill()

    accounts = try await start()
    try await wait(for: "revoking", deletion, accounts)
    let revoker = try await stage.start(.tokenRevoker)
    try await wait(for: "erasing", deletion, accounts)
    #expect(try await !stage.isGood(token))
    #expect(try stage.shop.customers().count == 2, "nothing is erased before the authorization is ended")
    _ = try await stage.start(.dataEraser)
    let done = try await wait(for: "completed", deletion, accounts)
    #expect(try stage.shop.customers().count == 1)
    let steps = try #require(try done.object["steps"] as? [[String: Any]])
    #expect(steps.map { $0["name"] as? String } == ["announcement", "revocation", "erasure"])
    #expect(steps.map { $0["state"] as? String } == ["published", "tokens-revoked", "account-erased"])
    #expect(steps[2]["targets"] as? [String: Int] == ["erased": 2], "the shop, and the account store")
    let receipt = try #require(try done.object["receipt"] as? [String: String])
    #expect(receipt == ["event": deletion, "command": "siwa audit receipt \(deletion)", "log": Self.auditLog])

    // It is answered for, and nobody is there any more.
    #expect(try await ask(accounts, "DELETE", "/v1/accounts/{id}", id).text == done)
    #expect(try await ask(accounts, "GET", "/v1/accounts/{id}", id).status == 404)
    #expect(try await ask(accounts, "POST", "/v1/accounts/{id}/access-token", id).status == 404)
    let nobody = String(repeating: "A", count: 43)
    #expect(try await ask(accounts, "DELETE", "/v1/accounts/{id}", nobody).status == 404)
    #expect(try await ask(accounts, "GET", "/v1/deletions/{id}", "deletion-of-nobody").status == 404)

    // Without a token it goes on, and the person is told what they have to do.
    let other = try await account(bob, accounts)
    let byHand = try await ask(accounts, "DELETE", "/v1/accounts/{id}", other)
    #expect(byHand.status == 202 && byHand.text.contains("https://account.apple.com"), "\(byHand.text)")
    let hisDeletion = try #require(try byHand.text.object["id"] as? String)
    try await wait(for: "completed", hisDeletion, accounts)
    // Where there is nothing to revoke, the eraser need not wait: whoever is later finds the other's work.
    try await until(every: .milliseconds(100)) {
      let his = try await self.ask(accounts, "GET", "/v1/deletions/{id}", hisDeletion).text
      let words = [#""state":"no-token""#, #""state":"covered""#]
      return his.contains("endByHand") && words.contains { his.contains($0) }
    }
    #expect(try stage.shop.customers().isEmpty)

    let verified = try await stage.siwa(
      "erase", "--verify", "--place", "account-store", "--team", AppleSide.team, "--sub", ada.subject)
    #expect(verified.end == .exit(0), "\(verified)")
    for program in [accounts.program, revoker.program] {
      #expect(!program.errors.contains(ada.subject) && !program.errors.contains(token.text))
    }
    accounts.program.signal(SIGTERM)
    #expect(try await accounts.program.untilEnd() == .exit(0))
    let check = try await Python.run(
      "Tests/AccountServicesTests/Python/check_openapi.py", ["accounts"],
      input: [UInt8](try JSONEncoder().encode(answers)))
    #expect(check.end == .exit(0), "\(check.errors)")
  }

  private func start(_ changes: [String: String] = [:]) async throws -> RunningAccounts {
    let program = try stage.launch(
      "siwa-accounts", changes.merging(["SIWA_ACCOUNTS_AUDIT_LOG": Self.auditLog]) { own, _ in own })
    let running = RunningAccounts(
      program: program, address: try await program.address("listen.address", saidWith: "accounts listens"),
      administration: Administration(
        try await program.address("listen.administration", saidWith: "accounts listens")))
    try await until { try await running.administration.get("/readyz").status == 200 }
    return running
  }

  private func account(_ person: Person, _ running: RunningAccounts) async throws -> String {
    let found = try await ask(
      running, "GET", "/v1/accounts", "", query: "?sub=\(person.subject)&client_id=\(AppleSide.app)")
    return try #require(try found.text.object["id"] as? String, "\(found)")
  }

  @discardableResult
  private func wait(for state: String, _ deletion: String, _ running: RunningAccounts) async throws -> String {
    var last = ""
    try await until(every: .milliseconds(100)) {
      let answer = try await self.ask(running, "GET", "/v1/deletions/{id}", deletion)
      last = answer.text
      let found = try answer.text.object["state"] as? String
      return answer.status == 200 && found == state
    }
    return last
  }

  private func ask(
    _ running: RunningAccounts, _ method: String, _ path: String, _ id: String, query: String = ""
  ) async throws -> (status: Int, text: String, location: String) {
    let url = "https://\(running.address)\(path.replacing("{id}", with: id))\(query)"
    let output = try await RunningProgram.run(
      path: "curl",
      [
        "--silent", "--show-error", "--cacert", stage.apple.certificate, "--request", method, "--header",
        "Authorization: Bearer \(stage.token)", "--write-out", "\n%{http_code} %header{location}", url,
      ]
    ) { program in
      let end = try await program.untilEnd()
      #expect(end == .exit(0), "\(program.errors)")
      return program.output
    }
    let lines = output.split(separator: "\n", omittingEmptySubsequences: false)
    let words = try #require(lines.last).split(separator: " ", omittingEmptySubsequences: false)
    let status = try #require(words.first.flatMap { Int($0) }, "\(output)")
    let text = lines.dropLast().joined(separator: "\n")
    answers.append(
      AccountsStage.Answer(method: method, path: path, status: status, body: text, headers: [:], asked: nil))
    return (status, text, words.count > 1 ? String(words[1]) : "")
  }
}
