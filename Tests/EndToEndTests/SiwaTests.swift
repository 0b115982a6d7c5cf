import AppleSimulator
import EventLoop
import Glibc
import HTTPClient
import Kafka
import TestSupport
import Testing

/// The operators' program `siwa`.
@Loop @Suite(.serialized) struct SiwaTests {
  private static let commands = [
    "dev", "notify", "simulate", "keys", "spool", "store create-key", "store begin", "store migrate", "store integrity",
    "store backup", "dead-letters list", "dead-letters show", "dead-letters retry", "dead-letters discard",
    "topics list", "topics create", "topics compare", "config check",
    "config list",
  ]

  private func finish(
    _ words: [String], _ environment: [String: String] = [:]
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.run("siwa", words, environment) { program in
      try await program.outcome()
    }
  }

  /// Checks what `siwa dev --once` has said, as a person would.
  private func expectOneOfEach(_ outcome: (end: RunningProgram.End, output: String, errors: String)) {
    #expect(outcome.end == .exit(0), "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n")
    let types = ["email-disabled", "email-enabled", "consent-revoked", "account-delete", "account-deletion-requested"]
    let outcomes = ["  relay-changed", "  tokens-revoked", "  sessions-ended", "  account-erased"]
    for (topic, names) in [("apple.account-events.v1", types), ("apple.account-outcomes.v1", outcomes)] {
      for name in names {
        // The name, whom it is about, and where it stands; on a broker that tests share there may be others' events.
        let line = lines.first { $0.hasPrefix("\(name) ") && $0.contains("person 0 ") }
        let words = line?.split(separator: " ").map(String.init) ?? []
        let place = words.drop { $0 != topic }.dropFirst().first
        let numbers = place?.split(separator: "/").compactMap { Int($0) }
        #expect(numbers?.count == 2, "\(name): \(outcome.output)")
      }
    }
    #expect(
      lines.contains {
        $0.hasPrefix("  account-erased ")
          && $0.hasSuffix(
            " after account-delete; shop erased: 1 found, 3 rows erased, 0 left; account-store erased")
      }, "\(outcome.output)")
    #expect(lines.contains("no customer is left in the shop, no token, and no mail state."))
    #expect(lines.contains { $0.hasPrefix("Every obligation is met, by the audit log of ") }, "\(outcome.output)")
  }

  /// The line that has the receipt of the erasure checked again, taken apart.
  private func checkingAgain(_ output: String) throws -> (script: String, receipt: String, key: String) {
    let words = try #require(output.split(separator: "\n").last).split(separator: " ").map(String.init)
    try #require(
      words.count == 6 && words[0] == "python3" && words[2] == "receipt" && words[4] == "--vkey", "\(output)")
    return (words[1], words[3], words[5])
  }

  /// A folder for `PATH` in which nothing is but a Python that runs so; nothing at all where that is nil.
  private func path(withPythonThat runs: String?, in folder: TemporaryDirectory) -> String {
    guard let runs else { return folder.path }
    let script = folder.write("python3", "#!/bin/sh\n\(runs)\n".utf8, mode: 0o700)
    return String(script.dropLast("/python3".count))
  }

  @Test(.timeLimit(.minutes(30)))
  func whatFollowsFromEachTypeIsDoneInOneProcess() async throws {
    let (folder, proof) = (TemporaryDirectory(), TemporaryDirectory())
    let environment = ["TMPDIR": folder.path, "PATH": path(withPythonThat: nil, in: TemporaryDirectory())]
    let outcome = try await finish(["dev", "--once", "--proof", proof.path + "/new"], environment)
    expectOneOfEach(outcome)
    #expect(unsafe rmdir(folder.path) == 0, "something was left behind")
    // Nobody else could check it here, and that is said.
    #expect(outcome.output.contains("\ndocs/verify.py has NOT checked it: there is no python3.\n"), "\(outcome.output)")
    let (_, receipt, key) = try checkingAgain(outcome.output)
    #expect(receipt.hasPrefix(proof.path + "/new/") && receipt.hasSuffix(".tlog-proof"))
    let checked = try await finish(["audit", "check", receipt, "--vkey", key])
    #expect(checked.end == .exit(0) && checked.output.contains(#""outcome":"account-erased""#), "\(checked)")
    #expect(checked.output.contains(#""type":"account-delete""#), "\(checked)")
    let bundle = proof.path + "/new/audit.tar"
    let complete = try await finish(["audit", "completeness", "--log", bundle, "--vkey", key])
    #expect(
      complete.end == .exit(0) && complete.output.contains("\nOpen         0, 0 of them overdue\n"), "\(complete)")
  }

  @Test(
    .timeLimit(.minutes(30)), Python.isThere,
    arguments: [(nil, 0), ("[ $1 = -c ] || { echo NO: it does not hold >&2; exit 1; }", 1), ("exit 1", 0)]
      as [(String?, Int32)])
  func whatIsProvenIsCheckedByAnotherProgram(instead: String?, code: Int32) async throws {
    let (folder, place) = (TemporaryDirectory(), TemporaryDirectory())
    let path = path(withPythonThat: instead ?? "exec \(Python.interpreter) \"$@\"", in: place)
    let outcome = try await finish(["dev", "--once"], ["TMPDIR": folder.path, "PATH": path])
    #expect(outcome.end == .exit(code), "\(outcome)")
    guard let instead else {
      #expect(outcome.output.contains("/docs/verify.py has verified all "), "\(outcome)")
      let (script, receipt, key) = try checkingAgain(outcome.output)
      #expect(receipt.hasPrefix(folder.path + "/siwa-proof-"))
      let again = try await RunningProgram.finish(
        path: Python.interpreter, [script, "receipt", receipt, "--vkey", key])
      #expect(again.end == .exit(0) && again.output.contains("account-erased"), "\(again)")
      return
    }
    if code == 1 {
      let isRefused = outcome.errors.contains("does not verify ") && outcome.errors.contains("NO: it does not hold")
      #expect(isRefused, "\(outcome)")
    } else {
      let words =
        "\ndocs/verify.py has NOT checked it: python3 has no module cryptography (Debian: python3-cryptography)."
      #expect(outcome.output.contains(words), "\(instead): \(outcome)")
    }
  }

  @Test(.timeLimit(.minutes(30)), RealBroker.isThere)
  func whatFollowsFromEachTypeIsDoneOverARealKafka() async throws {
    let broker = try await RealBroker.withTopics()
    let folder = TemporaryDirectory()
    expectOneOfEach(
      try await finish(["dev", "--once", "--kafka", broker.bootstrapServers, "--proof", folder.path]))
  }

  @Test(.timeLimit(.minutes(30)))
  func whatIsToldToRunRuns() async throws {
    let folder = TemporaryDirectory()
    try await RunningProgram.run("siwa", ["dev", "--every", "1h"], ["TMPDIR": folder.path]) { dev in
      // As it is printed, on two lines with a backslash between them.
      let first = try await dev.outputLine(with: "siwa notify account-delete --user ada --to ")
      let second = try await dev.outputLine(with: " --simulator ", " --trust ")
      let words = (first + second).split(separator: " ").filter { $0 != "\\" }.map(String.init).dropFirst()
      #expect(try await finish(Array(words)).end == .exit(0))
      _ = try await dev.outputLine(with: "account-delete ", "apple.account-events.v1 ")
      let end = try await finish(words + ["--fault", "unknown-type", "--copies", "2"])
      #expect(end.end == .exit(0) && end.output.contains(#""attempts":["200","200"]"#))
      _ = try await dev.outputLine(with: "apple.account-events.quarantine.v1 ")
      for (fault, status) in [("forged-signature", "400"), ("wrong-audience", "400"), ("body-ten-megabytes", "413")] {
        let outcome = try await finish(words + ["--fault", fault])
        #expect(outcome.end == .exit(0) && outcome.output.contains(#""attempts":["\#(status)"]"#), "\(outcome)")
      }
      // Nobody listens there: a delivery that fails, and a simulator that cannot be asked.
      for option in ["--to", "--simulator"] {
        var changed = Array(words)
        let place = try #require(changed.firstIndex(of: option))
        changed[place + 1] = "https://127.0.0.1:9"
        let end = try await finish(changed).end
        #expect(end == .exit(1), "\(option)")
      }
      dev.signal(SIGINT)
      #expect(try await dev.untilEnd() == .exit(0))
      #expect(unsafe rmdir(folder.path) == 0, "something was left behind")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func theSimulatorServesAnIngressOfItsOwn() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      let folder = TemporaryDirectory()
      let words = ["simulate", "--port", "0", "--folder", folder.path + "/simulator", "--trust", stage.trustAnchor]
      try await RunningProgram.run("siwa", words) { simulator in
        let keys = String(
          try #require(try await simulator.outputLine(with: "Apple (simulated)").split(separator: " ").last))
        let trust = String(
          try #require(try await simulator.outputLine(with: "Trust anchor").split(separator: " ").last))
        try await stage.ingress(["SIWA_APPLE_KEYS": keys, "SIWA_APPLE_TRUSTED_CA": trust]) { ingress in
          let notify = [
            "notify", "email-enabled", "--user", "ada", "--to", try ingress.url.text, "--trust", trust, "--simulator",
            String(keys.dropLast("/auth/keys".count)),
          ]
          let outcome = try await finish(notify)
          #expect(outcome.end == .exit(0), "\(outcome)")
        }
        for file in ["key.pem", "certificate.pem"] {
          var status = stat()
          #expect(unsafe stat(folder.path + "/simulator/" + file, &status) == 0 && status.st_mode & 0o77 == 0)
          #expect(unsafe unlink(folder.path + "/simulator/" + file) == 0)
        }
        #expect(unsafe rmdir(folder.path + "/simulator") == 0)
        simulator.signal(SIGTERM)
        #expect(try await simulator.untilEnd() == .exit(0))
      }
    }
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30)), arguments: [(#"["200","200"]"#, 0), (#"["200","503"]"#, 1), (#"["200"]"#, 1)])
  func everyCopyHasToBeAnsweredRightly(attempts: String, code: Int32) async throws {
    let body = #"{"jti":"1","sub":"2","attempts":\#(attempts)}"#
    let simulator = try ScriptedServer(
      answering:
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    let outcome = try await finish([
      "notify", "consent-revoked", "--user", "ada", "--to", "https://localhost:9/", "--copies", "2", "--simulator",
      "http://127.0.0.1:\(simulator.port)",
    ])
    #expect(outcome.end == .exit(code) && outcome.output == body + "\n", "\(outcome)")
    simulator.close()
  }

  @Test(.timeLimit(.minutes(30)))
  func checksTheConfigurationOfTheOthers() async throws {
    try await Stage.run(brokers: "127.0.0.1:9") { stage in
      let good = try await finish(["config", "check", "--program", "siwa-ingress"], stage.environment)
      #expect(good.end == .exit(0) && good.errors == "")
      #expect(good.output.hasPrefix("siwa-ingress\n") && good.output.hasSuffix("\nno faults\n"))
      #expect(good.output.contains("SIWA_INGRESS_CERTIFICATE\n") && good.output.contains("deploy/siwa.yaml:"))
      let words = ["config", "check", "--program", "siwa-ingress", "--set", "ingress.limits.body=1GiB"]
      let bad = try await finish(words, stage.environment)
      #expect(bad.end == .exit(1) && (bad.output + bad.errors).contains("--set ingress.limits.body: expected"))
      let list = try await finish(["config", "list"])
      #expect(list.end == .exit(0) && list.output.contains("| `ingress.listen` |"))
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func teachesWhoeverAsks() async throws {
    let overview = try await finish(["--help"])
    #expect(overview.end == .exit(0) && overview.errors == "")
    for command in Self.commands {
      #expect(overview.output.contains("\n  \(command) "))
      let help = try await finish(command.split(separator: " ").map(String.init) + ["--help"])
      #expect(help.end == .exit(0) && help.errors == "")
      #expect(
        help.output.hasPrefix("usage: siwa \(command) ") && help.output.contains("\nExamples:\n  siwa \(command)"))
    }
    let notify = try await finish(["notify", "--help"]).output
    for fault in Fault.allCases { #expect(notify.contains("  \(fault.rawValue): \(fault.summary)\n")) }
  }

  @Test(
    .timeLimit(.minutes(30)),
    arguments: [
      ([], "which command?"), (["config"], "which command?"), (["nonsense"], "unknown command"),
      (["notfy"], "did you mean notify?"), (["dev", "--nonsense"], "unknown option"),
      (["dev", "--every", "never"], "--every: expected"),
      (["dev", "--proof", "proof"], "--proof goes with --once"), (["notify", "account-delete"], "--user is missing"),
      (["simulate"], "--folder is missing"), (["config", "check", "--program", "other"], "--program: expected"),
    ] as [([String], String)])
  func isNotUsedWrongly(words: [String], complaint: String) async throws {
    let outcome = try await finish(words)
    #expect(outcome.end == .exit(2) && outcome.output == "")
    #expect(outcome.errors.contains(complaint), "\(outcome.errors)")
  }
}
