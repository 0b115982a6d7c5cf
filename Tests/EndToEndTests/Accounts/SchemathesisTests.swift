import AppleSimulator
import EventLoop
import Foundation
import TestSupport
import Testing

/// Schemathesis makes requests of the OpenAPI document, right ones and wrong ones, and holds the answers against it.
@Loop @Suite(Python.isThere, .timeLimit(.minutes(10))) struct SchemathesisTests {
  @Test func noRequestGetsAnAnswerThatTheDocumentDoesNotHave() async throws {
    try await AccountsStage.run { stage in
      let ada = Person(named: "Ada")
      let token = try await stage.identityToken(of: ada)
      let limits = ["SIWA_ACCOUNTS_LIMITS_REQUESTS": "100000", "SIWA_ACCOUNTS_LIMITS_CONNECTIONS": "64"]
      try await stage.accounts(limits) { running in
        let signedIn = try await stage.signIn(running, try stage.request(ada, token: token))
        let account = try #require(try signedIn.text.object["account"] as? [String: Any])
        let id = try #require(account["id"] as? String)
        // An identity token that Apple has not signed may look like one.
        let plain = """
          [checks.positive_data_acceptance]
          expected-statuses = ["2xx", "401", "403", "404", "409", "410", "422", "429", "503"]

          """
        // That there is an account, it has to be told.
        let known = """
          \(plain)
          [[operations]]
          include-path = "/v1/accounts/{id}"
          include-method = "GET"
          parameters = { "path.id" = "\(id)" }

          [[operations]]
          include-path = "/v1/accounts/{id}/access-token"
          parameters = { "path.id" = "\(id)" }

          """
        for (name, configuration) in [("plain.toml", plain), ("known.toml", known)] {
          let run = try await RunningProgram.finish(
            // It leaves what it has learned in the folder where it runs.
            path: "/usr/bin/env",
            [
              "-C", stage.files.path, Repository.root + "/.build/python/bin/schemathesis", "--config-file",
              stage.files.write(name, configuration), "run",
              Repository.root + "/schemas/accounts.openapi.yaml", "--url",
              "https://localhost:\(running.address.port)", "--header", "Authorization: Bearer \(stage.tokens.shop)",
              // What never ends is held against the document elsewhere.
              "--exclude-path", "/v1/events", "--tls-verify", stage.files.path + "/certificate.pem", "--phases",
              "coverage,fuzzing", "--checks", "all",
              "--seed", "1", "--max-examples", "\(SeededRandom.rounds(20).count)", "--continue-on-failure",
              "--no-color",
              "--request-timeout", "60",
            ])
          #expect(run.end == .exit(0), "\(run.output)\n\(run.errors)")
        }
        #expect(try await running.administration.get("/readyz").status == 200)
      }
    }
  }
}
