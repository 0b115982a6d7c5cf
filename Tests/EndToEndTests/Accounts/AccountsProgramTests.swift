import AppleSimulator
import EventLoop
import Foundation
import TestSupport
import Testing

/// The built `siwa-accounts` against a simulated Apple.
@Loop @Suite(.timeLimit(.minutes(30))) struct AccountsProgramTests {
  private let ada = Person(named: "Ada")

  @Test func signsInOnceAndAnswersTheSameAgain() async throws {
    try await AccountsStage.run { stage in
      let token = try await stage.identityToken(of: ada)
      try await stage.accounts { running in
        let asked = stage.apple.tokensAsked
        let body = try stage.request(ada, token: token)
        let first = try await stage.signIn(running, body, key: "one")
        #expect(first.status == 200, "\(first.text)")
        let account = try #require(try first.text.object["account"] as? [String: Any])
        let id = try #require(account["id"] as? String)
        #expect(account["isNew"] as? Bool == true)
        #expect(try first.text.object["sub"] as? String == ada.subject)
        let email = try #require(try first.text.object["email"] as? [String: Any])
        #expect(email["address"] as? String == ada.address && email["isPrivate"] as? Bool == true)

        // The answer may have been lost on its way.
        #expect(try await stage.signIn(running, body, key: "one").text == first.text)
        #expect(stage.apple.tokensAsked == asked + 1)
        #expect(try await stage.stored(ada).count == 1)
        #expect(stage.apple.isAuthorized(ada, for: AccountsStage.app))

        // A key is one request's, and a code, too.
        let next = try stage.request(ada, token: token)
        let reused = try await stage.signIn(running, next, key: "one")
        #expect(reused.status == 422 && reused.text.contains("idempotency-key-reused"), "\(reused.text)")
        let used = try await stage.signIn(running, body, key: "two")
        #expect(used.status == 409 && used.text.contains("begin-again"), "\(used.text)")
        #expect(stage.apple.tokensAsked == asked + 1)
        let known = try await stage.signIn(running, next)
        #expect(known.status == 200 && known.text.contains(#""isNew":false"#), "\(known.text)")
        #expect(known.text.contains(id))

        let (path, shop) = ("/v1/accounts/{id}", stage.tokens.shop)
        let shown = try await stage.ask(running, "GET", path, target: "/v1/accounts/\(id)", as: shop)
        #expect(shown.status == 200 && shown.text.contains(#""state":"authorized""#), "\(shown.text)")
        #expect(shown.text.contains(#""clientId":"com.example.app""#))
        let query = "?sub=\(ada.subject)&client_id=\(AccountsStage.web)"
        let found = try await stage.ask(running, "GET", "/v1/accounts", target: "/v1/accounts\(query)", as: shop)
        #expect(found.text == shown.text)
        #expect(try await running.administration.metric(#"siwa_accounts_sign_ins_total{outcome="new"}"#) == 2)
        #expect(try await running.administration.metric(#"siwa_accounts_sign_ins_total{outcome="known"}"#) == 1)
        // The simulated Apple has our clock.
        #expect(try await abs(running.administration.metric("siwa_apple_clock_difference_seconds")) < 30)

        // Another team's application sees nobody of this one.
        let other = stage.tokens.other
        #expect(try await stage.ask(running, "GET", path, target: "/v1/accounts/\(id)", as: other).status == 404)
        let foreign = try await stage.ask(running, "GET", "/v1/accounts", target: "/v1/accounts\(query)", as: other)
        #expect(foreign.status == 403 && foreign.text.contains("client-not-allowed"))
        let theirs = "/v1/accounts?sub=\(ada.subject)&client_id=\(AccountsStage.otherApp)"
        #expect(try await stage.ask(running, "GET", "/v1/accounts", target: theirs, as: other).status == 404)
        #expect(try await stage.signIn(running, next, as: other).status == 403)

        for (status, wrong) in try await wrongRequests(stage, running, token) {
          #expect(wrong.status == status, "\(wrong)")
        }
        #expect(!running.program.errors.contains(ada.subject) && !running.program.errors.contains(ada.address))
        running.program.signal(SIGTERM)
        #expect(try await running.program.untilEnd() == .exit(0))
      }
      try await stage.checkAnswers()
    }
  }

  /// Nothing that it still has to write is cut off, and others need not wait until its leases run out.
  @Test(PostgreSQLServer.isThere) func whoEndsGivesItsLeasesUp() async throws {
    let database = try await PostgreSQLServer.shared().makeDatabase()
    try await AccountsStage.run(postgreSQL: database) { stage in
      try await stage.accounts { running in
        try await until { try await running.administration.metric("siwa_accounts_validation_leads") == 1 }
        running.program.signal(SIGTERM)
        let end = try await running.program.untilEnd()
        #expect(end == .exit(0) && !running.program.errors.contains("does not answer"), "\(running.program.errors)")
      }
      try await stage.accounts { running in
        try await until { try await running.administration.metric("siwa_accounts_validation_leads") == 1 }
      }
    }
  }

  /// A core dump has the keys beside the people, and no erasure reaches it.
  @Test func nothingIsKeptOfItsMemory() async throws {
    try await AccountsStage.run { stage in
      try await stage.accounts { running in
        let limits = try String(contentsOfFile: "/proc/\(running.program.identifier)/limits", encoding: .utf8)
        #expect(limits.contains(#/Max core file size +0 +0 /#), "\(limits)")
      }
    }
  }

  /// Who drains after a time as a lame duck has the time to drain all the same.
  @Test func theTimeAsALameDuckIsNotTakenFromTheDrain() async throws {
    try await AccountsStage.run { stage in
      let life = ["SIWA_ACCOUNTS_LAME_DUCK": "35s", "SIWA_ACCOUNTS_DRAIN": "30s"]
      try await stage.accounts(life) { running in
        running.program.signal(SIGTERM)
        let end = try await running.program.untilEnd()
        #expect(end == .exit(0), "\(running.program.errors)")
      }
    }
  }

  /// What is refused, with the status that it gets.
  private func wrongRequests(
    _ stage: AccountsStage, _ running: RunningAccounts, _ token: String
  ) async throws -> [(Int, (status: Int, text: String, headers: [String: String]))] {
    let (path, shop) = ("/v1/sign-ins", stage.tokens.shop)
    let bob = Person(named: "Bob")
    let body = try stage.request(ada, token: token)
    return [
      (401, try await stage.ask(running, "POST", path, as: nil, body)),
      (401, try await stage.ask(running, "POST", path, as: String(shop.dropLast()), body)),
      (405, try await stage.ask(running, "GET", path, isDocumented: false, as: shop)),
      (400, try await stage.signIn(running, "{}")),
      (400, try await stage.signIn(running, body.replacingOccurrences(of: "clientId", with: "client"))),
      (400, try await stage.signIn(running, body, key: String(repeating: "k", count: 256))),
      (413, try await stage.signIn(running, body + String(repeating: " ", count: 70_000))),
      (
        422,
        try await stage.signIn(
          running, body.replacingOccurrences(of: "identityToken\":\"ey", with: "identityToken\":\"e"))
      ),
      (422, try await stage.signIn(running, body.dropLast() + #","nonce":"raw"}"#)),
      (422, try await stage.signIn(running, try stage.request(ada, token: token, code: "never-given"))),
      // Which of two fields another reader would go by, nobody knows.
      (400, try await stage.signIn(running, body, more: [("authorization", "Bearer \(shop)")])),
      (400, try await stage.signIn(running, body, key: "k", more: [("idempotency-key", "k")])),
      (400, try await stage.signIn(running, body, more: [("Content-Type", "application/json")])),
      (
        400,
        try await stage.ask(
          running, "GET", "/v1/deletions/{id}", target: "/v1/deletions/deletion-1", as: shop,
          more: [("Authorization", "Bearer \(stage.tokens.other)")])
      ),
      (415, try await stage.signIn(running, body, type: nil)),
      (415, try await stage.signIn(running, body, type: "application/x-www-form-urlencoded")),
      (415, try await stage.signIn(running, body, type: "application/jsonp")),
      (400, try await stage.signIn(running, "{", type: "Application/JSON ; charset=utf-8")),
      // The code of somebody else: what it opens is revoked.
      (422, try await stage.signIn(running, try stage.request(bob, token: token))),
      (400, try await stage.ask(running, "GET", "/v1/accounts", target: "/v1/accounts?sub=a", as: shop)),
      (
        404,
        try await stage.ask(
          running, "GET", "/v1/accounts/{id}", target: "/v1/accounts/" + String(repeating: "A", count: 43), as: shop)
      ),
    ]
  }

  /// Its time would lie ahead of what Apple tells next.
  @Test func noDeletionIsTakenUntilAClockThatIsAheadIsSetBack() async throws {
    try await AccountsStage.run { stage in
      let body = try stage.request(ada, token: try await stage.identityToken(of: ada))
      let faults = try await PreloadedFaults(files: stage.files, folder: stage.files.path + "/store")
      var id = ""
      try await stage.accounts { running in
        let signedIn = try await stage.signIn(running, body)
        let account = try #require(try signedIn.text.object["account"] as? [String: Any], "\(signedIn.text)")
        id = try #require(account["id"] as? String)
      }
      faults.clockOffset = .seconds(7200)
      try await stage.accounts(faults.environment) { running in
        try await until { try await running.administration.metric("siwa_apple_clock_difference_seconds") > 3600 }
        #expect(try await delete(id, stage, running) == "503 60")
        try await until { running.program.errors.contains("a deletion was not taken") }
        faults.clockOffset = .zero
        #expect(try await delete(id, stage, running) == "202 ")
      }
    }
  }

  /// Asks for a deletion: the status, and after how many seconds to ask again.
  private func delete(_ id: String, _ stage: AccountsStage, _ running: RunningAccounts) async throws -> String {
    let asked = try await RunningProgram.finish(
      path: "curl",
      [
        "--silent", "--show-error", "--cacert", stage.files.path + "/certificate.pem", "--request", "DELETE",
        "--header", "Authorization: Bearer \(stage.tokens.shop)", "--output", "/dev/null",
        "--write-out", "%{http_code} %header{retry-after}", "https://\(running.address)/v1/accounts/\(id)",
      ])
    #expect(asked.end == .exit(0), "\(asked.errors)")
    return asked.output
  }

  /// Whoever restores the database without its key, or mixes two up, learns of it before anybody signs in.
  @Test func anotherMasterKeyDoesNotStart() async throws {
    try await AccountsStage.run { stage in
      let made = try await stage.siwa("store", "create-key", stage.files.path + "/another-key")
      try #require(made.end == .exit(0), "\(made)")
      let other = stage.environment.merging(["SIWA_STORE_MASTER_KEY": stage.files.path + "/another-key"]) { $1 }
      let key = try String(contentsOfFile: stage.files.path + "/another-key", encoding: .utf8)
      try await RunningProgram.run("siwa-accounts", [], other) { program throws in
        #expect(try await program.untilEnd() == .exit(2))
        #expect(program.errors.contains("master key"), "\(program.errors)")
        #expect(!program.errors.contains("accounts listens") && !program.errors.contains(key.prefix(20)))
      }
    }
  }

  /// Whatever is wrong with a request, its answer is a problem of RFC 9457.
  @Test func whatIsNoRequestIsAnsweredWithAProblem() async throws {
    try await AccountsStage.run { stage in
      try await stage.accounts { running in
        for (head, status, kind) in [
          ("GET /v1/accounts HTTP/1.1\r\n\r\n", 400, "malformed"),
          ("GET /v1/accounts HTTP/3.0\r\nHost: a\r\n\r\n", 505, "unsupported-http"),
          ("GET /\(String(repeating: "a", count: 20_000)) HTTP/1.1\r\nHost: a\r\n\r\n", 431, "unsupported-http"),
          ("GET /v1/accounts HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n", 417, "unsupported-http"),
        ] {
          let client = try TLSClient(running.address)
          try await client.handshake()
          try await client.send(head)
          let answer = try await client.answer()
          #expect(answer.status == status && answer.field("Content-Type") == "application/problem+json")
          let problem = try answer.body.object
          #expect(problem["type"] as? String == "urn:siwa:problem:\(kind)" && problem["status"] as? Int == status)
        }
      }
    }
  }

  @Test func thePersonOfAnotherCodeKeepsTheirAuthorization() async throws {
    try await AccountsStage.run { stage in
      let token = try await stage.identityToken(of: ada)
      let bob = Person(named: "Bob")
      try await stage.accounts { running in
        let answer = try await stage.signIn(running, try stage.request(bob, token: token))
        #expect(answer.status == 422)
      }
      // The program has ended, and leaves nothing to be done.
      #expect(stage.apple.revocationsAsked == 1 && stage.apple.isAuthorized(bob, for: AccountsStage.app))
      #expect(try await stage.stored(bob).isEmpty)
      #expect(try await stage.stored(ada).isEmpty)
    }
  }

  @Test func killedBetweenApplesAnswerAndTheCommitItHasThePersonBeginAgain() async throws {
    try await AccountsStage.run { stage in
      let token = try await stage.identityToken(of: ada)
      let body = try stage.request(ada, token: token)
      let asked = stage.apple.tokensAsked
      // Apple has granted the tokens, and its answer is on its way.
      stage.apple.tokensDelay = .seconds(3600)
      try await stage.accounts { running in
        try await withThrowingTaskGroup { group in
          group.addTask(executorPreference: Loop.executor) {
            do { _ = try await stage.signIn(running, body, key: "one") } catch { return }  // nobody answers any more
            Issue.record("it was answered")
          }
          try await until { stage.apple.isAuthorized(ada, for: AccountsStage.app) }
          await running.program.kill()
          try await group.waitForAll()
        }
      }
      #expect(stage.apple.tokensAsked == asked + 1)
      stage.apple.tokensDelay = .zero
      try await stage.accounts { running in
        for key in ["one", "two"] {
          let again = try await stage.signIn(running, body, key: key)
          #expect(again.status == 409 && again.text.contains("begin-again"), "\(again.text)")
        }
        // Neither is the code sent twice.
        #expect(stage.apple.tokensAsked == asked + 1)
        #expect(try await stage.stored(ada).isEmpty)
        let anew = try await stage.signIn(running, try stage.request(ada, token: token), key: "three")
        #expect(anew.status == 200 && anew.text.contains(#""isNew":true"#), "\(anew.text)")
        #expect(try await stage.stored(ada).count == 1)
      }
    }
  }

  @Test func aCallerThatAsksTooOftenIsToldWhenToComeBack() async throws {
    try await AccountsStage.run { stage in
      try await stage.accounts(["SIWA_ACCOUNTS_LIMITS_REQUESTS": "1"]) { running in
        let path = "/v1/accounts?sub=a&client_id=\(AccountsStage.app)"
        // Many at once, so that they meet within a second on however busy a machine.
        let answers = try await withThrowingTaskGroup(of: (status: Int, wait: String?).self) { group in
          for _ in 1...60 {
            group.addTask(executorPreference: Loop.executor) {
              let answer = try await stage.ask(running, "GET", "/v1/accounts", target: path, as: stage.tokens.shop)
              return (answer.status, answer.headers["Retry-After"])
            }
          }
          var answers: [(status: Int, wait: String?)] = []
          for try await answer in group { answers.append(answer) }
          return answers
        }
        #expect(Set(answers.map(\.status)) == [404, 429])
        #expect(answers.allSatisfy { ($0.status == 429) == ($0.wait == "1") })
        let other = try await stage.ask(
          running, "GET", "/v1/accounts", target: "/v1/accounts?sub=a&client_id=\(AccountsStage.otherApp)",
          as: stage.tokens.other)
        #expect(other.status == 404, "each caller has a limit of its own")
      }
    }
  }
}
