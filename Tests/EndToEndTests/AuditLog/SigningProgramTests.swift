import EventLoop
import Glibc
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// `siwa-audit-log` without a key: another program signs its checkpoints.
@Loop @Suite(RealBroker.isThere, GoJudge.isThere, .serialized, .timeLimit(.minutes(30))) struct SigningProgramTests {
  private let files = TemporaryDirectory()

  @Test func aProgramThatFailsHangsOrLiesHoldsNothingBackForEverAndIsSaid() async throws {
    try await AuditTraffic.run(in: files) { stage, traffic in
      let script = try stage.haveSigned()
      let reader = try CheckpointReader(stage.auditKey.key, files: files)
      let log = try await stage.startAuditLog()
      reader.follow(log)
      try await traffic.put(20)
      try await log.untilPublished(traffic.entryCount)
      try await log.untilReadiness(is: true)

      for (manner, words) in [
        (SigningScript.Manner.failing, "it ended with 7: the module is locked"), (.hanging, "it took too long"),
        (.babbling, "neither a signature line nor a signature"), (.forging, "signature"),
      ] {
        let before = try await log.checkpoint()
        let failures = try await log.administration.metric("siwa_audit_log_signing_failures_total")
        let said = sayings(of: log, words)
        try script.behave(manner)
        try await traffic.put(20)
        try await until { sayings(of: log, words) > said }
        try await until { try await log.administration.metric("siwa_audit_log_signing_failures_total") > failures }
        try await until {
          let readiness = try await log.administration.get("/readyz")
          return readiness.status == 503 && readiness.text.contains("checkpoints cannot be signed: ")
        }
        // It reads on, and readers have what they had.
        let entries = traffic.entryCount
        try await until { try await entryCount(of: log) == Double(entries) }
        #expect(try await log.checkpoint()?.note == before?.note && before != nil, "\(manner)")
        if manner == .hanging {
          try await until { script.process != nil }
          let process = try #require(script.process)
          try await until { kill(process, 0) != 0 && errno == ESRCH }
        }
        try script.behave(.good)
        try await log.untilPublished(traffic.entryCount)
        try await log.untilReadiness(is: true)
      }

      // Told to end while the program hangs, it ends in time; the next one publishes what was read.
      try script.behave(.hanging)
      try await traffic.put(20)
      let entries = traffic.entryCount
      try await until { try await entryCount(of: log) == Double(entries) }
      #expect(try await log.end() == .exit(0), "\(log.program.errors)")
      #expect(!log.program.errors.contains("PRIVATE"))
      try script.behave(.good)
      let next = try await stage.startAuditLog()
      reader.follow(next)
      try await next.untilPublished(traffic.entryCount)
      let verified = try await stage.siwa(
        "audit", "verify", "--log", "http://\(next.address)", "--vkey", stage.auditKey.key.text)
      #expect(
        verified.end == .exit(0) && verified.output.contains("Signed by   \(stage.auditKey.key)\n"), "\(verified)")
      #expect(try await next.end() == .exit(0))
      try await traffic.expectAll(seenBy: reader)
    }
  }

  /// How often the program's log says of a checkpoint that it could not be signed, with these words.
  private func sayings(of log: RunningAuditLog, _ words: String) -> Int {
    log.program.errors.split(separator: "\n").count {
      $0.contains(#""level":"error""#) && $0.contains("a checkpoint could not be signed") && $0.contains(words)
    }
  }

  /// How many entries the program has appended.
  private func entryCount(of log: RunningAuditLog) async throws -> Double {
    var count = 0.0
    for kind in ["obligation", "effect"] {
      count += try await log.administration.metric(#"siwa_audit_log_entries_total{kind="\#(kind)"}"#)
    }
    return count
  }
}
