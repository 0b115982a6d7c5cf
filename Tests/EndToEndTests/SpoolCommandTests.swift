import AccountEvents
import AccountServices
import EventLoop
import SQLite
import Telemetry
import TestSupport
import Testing

/// `siwa spool`, beside the process that has the spool.
@Loop @Suite(.serialized) struct SpoolCommandTests {
  private let files = TemporaryDirectory()
  private var directory: String { files.path + "/spool" }

  private func siwa(
    _ words: [String], _ environment: [String: String] = [:]
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.run("siwa", ["spool"] + words, environment) { program in
      let end = try await program.untilEnd()
      return (end, program.output, program.errors)
    }
  }

  /// A spool with three records of Ada's in it.
  private func filled() async throws -> Spool {
    let start = try #require(Timestamp(milliseconds: 1_767_225_600_000))
    let spool = try await Spool.open(
      directory: directory, limit: 1 << 20, now: { start }, registry: MetricsRegistry(),
      logger: CapturedLog().logger())
    for number in 1...3 {
      _ = try await spool.insert(
        EventRecord(
          topic: .accountEvents, key: Array("A1B2C3D4E5/ada".utf8), value: Array(#"{"sub":"ada"}"#.utf8),
          headers: [
            EventRecord.Header(name: "ce_id", value: Array("event-\(number)".utf8)),
            EventRecord.Header(name: "ce_type", value: Array("com.apple.siwa.consent-revoked.v1".utf8)),
            EventRecord.Header(name: "ce_subject", value: Array("ada".utf8)),
          ]))
    }
    return spool
  }

  @Test(.timeLimit(.minutes(3)))
  func showsWhatWaits() async throws {
    let spool = try await filled()
    let outcome = try await siwa(["--directory", directory, "--list", "--limit", "2"])
    #expect(outcome.end == .exit(0) && outcome.errors == "" && !outcome.output.contains("ada"))
    let lines = outcome.output.split(separator: "\n").map(String.init)
    #expect(lines.count == 7, "\(outcome.output)")
    #expect(lines.prefix(3) == ["Spool    \(directory)", "Records  3", "Bytes    \(spool.bytes)"])
    #expect(lines[3].hasPrefix("Oldest   2026-01-01T00:00:00.000Z, ") && lines[3].hasSuffix(" seconds ago"))
    #expect(lines[4] == "3  apple.account-events.v1  com.apple.siwa.consent-revoked.v1")
    #expect(
      lines[6]
        == "2  2026-01-01T00:00:00.000Z  apple.account-events.v1  com.apple.siwa.consent-revoked.v1  event-2")
    await spool.close()

    // The directory as the configuration has it, of which nothing else is needed; nobody has the spool now.
    let json = try await siwa(["--json"], ["SIWA_INGRESS_SPOOL_DIRECTORY": directory])
    #expect(json.end == .exit(0) && json.errors == "" && !json.output.contains("list"))
    #expect(json.output.hasPrefix(#"{"directory":"\#(directory)","records":3,"bytes":"#))
    #expect(
      json.output.hasSuffix(
        #""counts":[{"topic":"apple.account-events.v1","type":"com.apple.siwa.consent-revoked.v1","records":3}]}"#
          + "\n"))
    let listed = try await siwa(["--json", "--list", "--directory", directory])
    #expect(
      listed.output.contains(
        #""list":[{"sequence":1,"since":1767225600000,"topic":"apple.account-events.v1","#
          + #""type":"com.apple.siwa.consent-revoked.v1","event":"event-1"},"#))

    let database = try Database(directory + "/spool.sqlite", .readWrite(pageSize: 4096), busyTimeout: .seconds(60))
    try database.execute("UPDATE record SET headers = x'ff' WHERE sequence > 1")
    let damaged = try await siwa(["--directory", directory])
    #expect(damaged.end == .exit(0) && damaged.output.contains("\nDamaged  2, which stay: 2, 3\n1  apple."))
  }

  @Test(.timeLimit(.minutes(3)))
  func saysWhyItShowsNothing() async throws {
    let missing = try await siwa(["--directory", directory])
    #expect(missing.end == .exit(1) && missing.output == "")
    #expect(missing.errors == "siwa: the spool in \(directory): there is none\n")
    let wrong = try await siwa([], ["SIWA_INGRESS_SPOOL_DIRECTORY": ""])
    #expect(wrong.end == .exit(2) && wrong.output == "" && wrong.errors.contains("SIWA_INGRESS_SPOOL_DIRECTORY"))
    #expect(try await siwa(["--limit", "0"]).end == .exit(2))
  }
}
