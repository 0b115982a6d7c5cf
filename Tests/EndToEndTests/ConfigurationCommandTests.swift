import EventLoop
import TestSupport
import Testing

/// `siwa config check`, as an operator of containers uses it: with variables.
@Loop @Suite(.timeLimit(.minutes(30))) struct ConfigurationCommandTests {
  private let files = TemporaryDirectory()

  private func check(
    _ program: String, _ file: String, _ environment: [String: String]
  ) async throws -> (end: RunningProgram.End, output: String) {
    let path = files.write("siwa.yaml", file)
    return try await RunningProgram.run(
      "siwa", ["config", "check", "--program", program, "--config", path], environment
    ) { program in
      let end = try await program.untilEnd()
      return (end, program.output)
    }
  }

  private func isSet(_ setting: String, _ variable: String, in output: String) -> Bool {
    output.split(separator: "\n").contains { line in
      line.split(separator: " ").first.map(String.init) == setting && line.hasSuffix(" \(variable)")
    }
  }

  /// What the table of settings names as the variables of a target.
  @Test func targetsCanBeSetByTheirVariables() async throws {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    let outcome = try await check(
      "siwa-data-eraser",
      """
      teams: { A1B2C3D4E5: { audiences: [com.example.app], erase: { consent-revoked: [] } } }
      kafka: { bootstrap.servers: "127.0.0.1:9" }
      store: { sqlite: store.sqlite, master-key: \(files.write("key", String(repeating: "A", count: 43))) }
      data-eraser: { targets: { news-letter: { url: "https://newsletter.example.com/erasures" } } }
      """,
      [
        "SIWA_DATA_ERASER_TARGETS_NEWS_LETTER_SECRET_FILE": files.write("whsec", secret),
        "SIWA_DATA_ERASER_TARGETS_SHOP_POSTGRESQL": "host=db.example password=hunter2",
        "SIWA_DATA_ERASER_TARGETS_SHOP_COUNT": "SELECT count(*) FROM customer WHERE sub = $1",
        "SIWA_DATA_ERASER_TARGETS_SHOP_ERASE": "DELETE FROM customer WHERE sub = $1",
        "SIWA_DATA_ERASER_TARGETS_SHOP_FIND": "SELECT count(*) FROM customer WHERE sub = $1",
      ])
    #expect(outcome.end == .exit(0), "\(outcome.output)")
    for (setting, variable) in [
      ("news-letter.secret", "NEWS_LETTER_SECRET_FILE"), ("shop.postgresql", "SHOP_POSTGRESQL"),
    ] {
      #expect(
        isSet("data-eraser.targets.\(setting)", "SIWA_DATA_ERASER_TARGETS_\(variable)", in: outcome.output),
        "\(outcome.output)")
    }
    #expect(
      outcome.output.contains("warning: SIWA_DATA_ERASER_TARGETS_SHOP_POSTGRESQL: sslmode=prefer does not"))
    #expect(!outcome.output.contains("hunter2") && !outcome.output.contains(secret))
  }

  /// Who verifies events has to know whose they may be.
  @Test(arguments: [true, false]) func theEraserNeedsTheAppsUnlessItBelievesTheTopic(verifies: Bool) async throws {
    let outcome = try await check(
      "siwa-data-eraser",
      """
      teams: { A1B2C3D4E5: { erase: { consent-revoked: [] } } }
      kafka: { bootstrap.servers: "127.0.0.1:9" }
      store: { sqlite: store.sqlite, master-key: \(files.write("key", String(repeating: "A", count: 43))) }
      data-eraser: { targets: { invoices: { retain: a law, until: 2036-12-31 } } }
      """, verifies ? [:] : ["SIWA_DATA_ERASER_VERIFY": "false"])
    #expect(outcome.end == .exit(verifies ? 1 : 0), "\(outcome.output)")
    #expect(outcome.output.contains("teams.A1B2C3D4E5.audiences: missing") == verifies, "\(outcome.output)")
  }

  /// As Docker and Kubernetes hand secrets to a program; and a secret whose name is misspelt.
  @Test func aTeamsKeyComesFromTheFileThatAVariableNames() async throws {
    let outcome = try await check(
      "siwa-token-revoker", "teams: { A1B2C3D4E5: { key-id: ABC123DEFG } }",
      [
        "SIWA_TEAMS_A1B2C3D4E5_PRIVATE_KEY_FILE": files.write("key.p8", "no key"),
        "SIWA_KAFKA_SASL_PASWORD": "hunter2",
      ])
    #expect(outcome.end == .exit(1))
    #expect(
      isSet("teams.A1B2C3D4E5.private-key", "SIWA_TEAMS_A1B2C3D4E5_PRIVATE_KEY_FILE", in: outcome.output),
      "\(outcome.output)")
    #expect(!outcome.output.contains("unknown setting") && outcome.output.contains("kafka.sasl.pasword"))
    #expect(!outcome.output.contains("hunter2"))
  }
}
