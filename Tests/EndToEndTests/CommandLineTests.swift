import EventLoop
import Glibc
import Kafka
import TestSupport
import Testing

/// What the programs say to who starts them wrongly, or asks.
@Loop @Suite(.serialized) struct CommandLineTests {
  private func end(
    of name: String, _ arguments: [String], _ environment: [String: String] = [:]
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.run(name, arguments, environment) { program in
      try await program.outcome()
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func theIngressTeachesWhoeverAsks() async throws {
    let (end, output, errors) = try await end(of: "siwa-ingress", ["--help"])
    #expect(end == .exit(0) && errors == "")
    for word in ["usage: siwa-ingress", "Examples:", "SIGTERM", "Exit codes:", "ingress.deadlines.publish"] {
      #expect(output.contains(word))
    }
  }

  @Test(.timeLimit(.minutes(30)), arguments: [["--nonsense"], ["word"], ["--config"], ["--set", "nonsense"]])
  func theIngressIsNotStartedWrongly(words: [String]) async throws {
    let (end, output, errors) = try await end(of: "siwa-ingress", words)
    #expect(end == .exit(2) && output == "" && !errors.isEmpty)
  }

  @Test(.timeLimit(.minutes(30)))
  func allFaultsOfAConfigurationAreToldAtOnce() async throws {
    let files = TemporaryDirectory()
    let file = files.write(
      "siwa.yaml",
      """
      teams:
        A1B2C3D4E5: { audiences: [com.example.app] }
      ingress:
        listen: nowhere
        certificate: missing.pem
        colour: red
      """)
    let (end, output, errors) = try await end(
      of: "siwa-ingress", ["--config", file, "--set", "log.level=loud"],
      ["SIWA_INGRESS_DEADLINES_DRAIN": "soon", "SIWA_KAFKA_ACKS": "sometimes"])
    #expect(end == .exit(2) && output == "")
    let lines = errors.split(separator: "\n")
    let places = [
      "\(file):4:", "\(file):5:", "\(file):6:", "SIWA_INGRESS_DEADLINES_DRAIN:", "SIWA_KAFKA_ACKS:",
      "kafka.bootstrap.servers: missing", "ingress.private-key: missing", "--set log.level:",
    ]
    for place in places { #expect(lines.count { $0.hasPrefix(place) } == 1, "\(place) in \(errors)") }
    #expect(lines.count == places.count, "\(errors)")
  }

  /// What shows only when the parts are made.
  @Test(
    .timeLimit(.minutes(30)),
    arguments: [
      (["SIWA_KAFKA_ACKS": "1"], "SIWA_KAFKA_ACKS: cannot be set to anything but -1: acknowledged means"),
      (
        ["SIWA_KAFKA_SECURITY_PROTOCOL": "ssl", "SIWA_KAFKA_SSL_CA_LOCATION": "/none"], "kafka: ssl.ca.location failed"
      ),
      (["SIWA_INGRESS_CERTIFICATE": "/etc/hostname"], "the certificate /etc/hostname: "),
      (["SIWA_INGRESS_PRIVATE_KEY": "/etc/hostname"], "the private key /etc/hostname: "),
    ])
  func aConfigurationThatCannotWorkIsNotTried(changes: [String: String], complaint: String) async throws {
    try await Stage.run(brokers: "127.0.0.1:9") { stage in
      let (end, _, errors) = try await end(of: "siwa-ingress", [], stage.environment.merging(changes) { $1 })
      #expect(end == .exit(2))
      #expect(errors.contains(complaint), "\(errors)")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func aTakenPortIsNamed() async throws {
    try await Stage.run(brokers: "127.0.0.1:9") { stage in
      let taken = try ListeningSocket(.loopback(port: 0))
      let changes = ["SIWA_INGRESS_LISTEN": "\(taken.address)"]
      let (end, _, errors) = try await end(of: "siwa-ingress", [], stage.environment.merging(changes) { $1 })
      #expect(end == .exit(1))
      #expect(errors.contains("siwa-ingress: cannot listen on \(taken.address): Address already in use\n"))
    }
  }

  /// Kafka takes the connection and says nothing: for a minute, if nobody interrupts it.
  @Test(.timeLimit(.minutes(30)), arguments: [SIGINT, SIGTERM])
  func anOperatorCanBreakACommandOff(signal: Int32) async throws {
    let silent = try ListeningSocket(.loopback(port: 0))
    try await RunningProgram.run(
      "siwa", ["topics", "list", "--set", "kafka.bootstrap.servers=\(silent.address)"]
    ) { program in
      let connection = try #require(try await silent.accept())
      program.signal(signal)
      #expect(try await program.untilEnd() == .signal(signal))
      connection.close()
    }
    silent.close()
  }

  /// A disk that is full, and a reader that has gone.
  @Test(
    .timeLimit(.minutes(30)),
    arguments: [
      ["--help"], ["config", "list"], ["accounts", "create-token"], ["store", "create-key", "key"],
      ["replay", "--in", "records"],
    ])
  func whatCouldNotBeWrittenIsNoSuccess(words: [String]) async throws {
    let files = TemporaryDirectory()
    _ = files.write(
      "records",
      """
      {"format":"siwa-records","version":1,"topic":"apple.account-events.v1","written":"2026-05-03T10:00:00.000Z"}
      {"partition":3,"offset":18,"timestamp":1777802400012,"key":"A1B2C3D4E5/000768.1","value":null,"headers":[]}
      {"records":1}

      """)
    for (output, cause) in [
      (">/dev/full", "No space left on device"), ("> >(:); wait $!", "Broken pipe"),
    ] {
      let script = "cd \"$0\"; rm -f key; exec 3\(output); exec \"$@\" >&3"
      let (end, _, errors) = try await RunningProgram.finish(
        path: "/bin/bash", ["-c", script, files.path, RunningProgram.path(of: "siwa")] + words)
      #expect(end == .exit(1), "\(errors)")
      #expect(errors.hasSuffix("siwa: the output could not be written: \(cause)\n"), "\(errors)")
    }
  }
}
