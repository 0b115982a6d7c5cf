import AppleSimulator
import EventLoop
import Foundation
import TestSupport
import Testing

/// Schemathesis makes requests of the OpenAPI document, right ones and wrong ones, and holds the answers against it.
@Loop @Suite(Python.isThere, .timeLimit(.minutes(30))) struct SchemathesisTests {
  @Test func noRequestGetsAnAnswerThatTheDocumentDoesNotHave() async throws {
    try await AccountsStage.run { stage in
      let ada = Person(named: "Ada")
      let token = try await stage.identityToken(of: ada)
      let limits = ["SIWA_ACCOUNTS_LIMITS_REQUESTS": "100000", "SIWA_ACCOUNTS_LIMITS_CONNECTIONS": "64"]
      let bob = Person(named: "Bob")
      let bobsToken = try await stage.identityToken(of: bob)
      try await stage.accounts(limits) { running in
        let id = try await account(of: ada, token, stage, running)
        let leaving = try await account(of: bob, bobsToken, stage, running)
        let deletion = try await Self.deletion(of: leaving, stage, running)
        // An identity token that Apple has not signed may look like one.
        let plain = """
          [checks.positive_data_acceptance]
          expected-statuses = ["2xx", "401", "403", "404", "409", "410", "422", "429", "503"]

          """
        // What there is, it has to be told.
        let known = """
          \(plain)
          [[operations]]
          include-operation-id = "findAccount"
          parameters = { "query.sub" = "\(ada.subject)", "query.client_id" = "\(AccountsStage.app)" }

          [[operations]]
          include-operation-id = "showAccount"
          parameters = { "path.id" = "\(id)" }

          [[operations]]
          include-operation-id = "deleteAccount"
          parameters = { "path.id" = "\(leaving)" }

          [[operations]]
          include-operation-id = "refreshAccessToken"
          parameters = { "path.id" = "\(id)" }

          [[operations]]
          include-operation-id = "showDeletion"
          parameters = { "path.id" = "\(deletion)" }

          """
        let document = try Self.document(withExample: try stage.request(ada, token: token))
        // The second one has learned from the first whom there is to be deleted.
        for (name, configuration) in [("known.toml", known), ("plain.toml", plain)] {
          let run = try await RunningProgram.finish(
            // It leaves what it has learned in the folder where it runs.
            path: "/usr/bin/env",
            [
              "-C", stage.files.path, Repository.root + "/.build/python/bin/schemathesis", "--config-file",
              stage.files.write(name, configuration), "run",
              stage.files.write("accounts.openapi.yaml", document), "--url",
              "https://localhost:\(running.address.port)", "--header", "Authorization: Bearer \(stage.tokens.shop)",
              // What never ends is held against the document elsewhere.
              "--exclude-path", "/v1/events", "--tls-verify", stage.files.path + "/certificate.pem", "--phases",
              "examples,coverage,fuzzing", "--checks", "all", "--report", "har", "--report-har-path",
              "\(stage.files.path)/\(name).har",
              "--seed", "1", "--max-examples", "\(SeededRandom.rounds(20).count)", "--continue-on-failure",
              "--no-color",
              // A machine full of other tests is slow, which is nobody's fault.
              "--request-timeout", "300", "--max-response-time", "300",
            ])
          #expect(run.end == .exit(0), "\(run.output)\n\(run.errors)")
        }
        let answers = try Self.answers("\(stage.files.path)/known.toml.har")
        for answer in [
          "POST /v1/sign-ins 200", "GET /v1/accounts 200", "GET /v1/accounts/\(id) 200",
          "POST /v1/accounts/\(id)/access-token 200", "DELETE /v1/accounts/\(leaving) 202",
          "GET /v1/deletions/\(deletion) 200",
        ] { #expect(answers.contains(answer), "\(answer)") }
        #expect(try await running.administration.get("/readyz").status == 200)
      }
    }
  }

  private func account(
    of person: Person, _ token: String, _ stage: AccountsStage, _ running: RunningAccounts
  ) async throws -> String {
    let signedIn = try await stage.signIn(running, try stage.request(person, token: token))
    let account = try #require(try signedIn.text.object["account"] as? [String: Any], "\(signedIn.text)")
    return try #require(account["id"] as? String)
  }

  /// The id of a deletion that is asked for.
  private static func deletion(
    of account: String, _ stage: AccountsStage, _ running: RunningAccounts
  ) async throws -> String {
    let url = "https://\(running.address)/v1/accounts/\(account)"
    let asked = try await RunningProgram.finish(
      path: "curl",
      [
        "--silent", "--show-error", "--cacert", stage.files.path + "/certificate.pem", "--request", "DELETE",
        "--header",
        "Authorization: Bearer \(stage.tokens.shop)", url,
      ])
    return try #require(try asked.output.object["id"] as? String, "\(asked)")
  }

  /// The OpenAPI document with a sign-in that succeeds.
  private static func document(withExample body: String) throws -> String {
    let document = try String(contentsOfFile: Repository.root + "/schemas/accounts.openapi.yaml", encoding: .utf8)
    let schema = "            schema: { $ref: '#/components/schemas/signInRequest' }\n"
    try #require(document.contains(schema))
    return document.replacing(schema, with: "\(schema)            example: \(body)\n")
  }

  /// What was answered to what, without queries.
  private static func answers(_ path: String) throws -> Set<String> {
    struct Archive: Decodable {
      struct Log: Decodable { let entries: [Entry] }
      struct Entry: Decodable {
        let request: Request
        let response: Response
      }
      struct Request: Decodable { let method, url: String }
      struct Response: Decodable { let status: Int }
      let log: Log
    }
    let archive = try JSONDecoder().decode(Archive.self, from: Data(contentsOf: URL(filePath: path)))
    return Set(
      archive.log.entries.map { entry in
        let path = URLComponents(string: entry.request.url)?.percentEncodedPath ?? ""
        return "\(entry.request.method) \(path) \(entry.response.status)"
      })
  }
}
