import EventLoop
import Foundation
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// Witnesses (C2SP tlog-witness) of the log that `siwa-audit-log` writes.
@Loop @Suite(RealBroker.isThere, GoJudge.isThere, .serialized, .timeLimit(.minutes(30))) struct WitnessTests {
  private let files = TemporaryDirectory()

  @Test func aWitnessThatIsAwaySlowOrLiesHoldsUpNobody() async throws {
    try await AuditTraffic.run(in: files) { stage, traffic in
      try await TestWitness.run(
        [("good", .honest), ("hanging", .hanging), ("never-content", .neverContent), ("forging", .forging)],
        of: stage.auditKey.key
      ) { witnesses in
        try stage.haveWitnessed(by: witnesses, andNobodyAt: "http://127.0.0.1:9")
        let reader = try CheckpointReader(stage.auditKey.key, files: files)
        let log = try await stage.startAuditLog()
        reader.follow(log)
        for _ in 0..<5 {
          try await traffic.put(20)
          try await log.untilPublished(traffic.entryCount)
          try await log.untilReadiness(is: true)
        }
        let good = witnesses[0]
        try await until { try await log.checkpoint()?.note.signatures.contains { $0.name == good.key.name } ?? false }
        let note = try #require(try await log.checkpoint()).note
        #expect(Set(note.signatures.map(\.name)) == [stage.auditKey.key.name, good.key.name])
        for witness in witnesses.dropFirst() {
          let failures = #"siwa_audit_log_witness_failures_total{witness="\#(witness.name)"}"#
          if witness.manner != .hanging { try await until { try await log.administration.metric(failures) > 0 } }
          try await until { !witness.asked.isEmpty }
        }
        #expect(try await log.read(LogPath.witnessed) == nil, "not all of them have cosigned anything")

        func verify(_ words: String...) async throws -> (end: RunningProgram.End, output: String, errors: String) {
          try await stage.siwa(
            ["audit", "verify", "--log", "http://\(log.address)", "--vkey", stage.auditKey.key.text] + words)
        }
        let all = witnesses.flatMap { ["--witness", $0.key.text] }
        let accepted = try await verify("--witness", good.key.text)
        #expect(accepted.end == .exit(0) && accepted.output.contains("Cosigned by \(good.key.name)\n"), "\(accepted)")
        let one = try await stage.siwa(
          ["audit", "verify", "--log", stage.auditLog, "--vkey", stage.auditKey.key.text, "--quorum", "1"] + all)
        #expect(one.end == .exit(0), "\(one)")
        let two = try await stage.siwa(
          ["audit", "verify", "--log", stage.auditLog, "--vkey", stage.auditKey.key.text, "--quorum", "2"] + all)
        #expect(two.end == .exit(1) && two.errors.contains("NO: not-cosigned: checkpoint"), "\(two)")
        #expect(try await verify("--witness", witnesses[3].key.text).end == .exit(1))

        // Whoever comes back cosigns the newest one, though nothing new comes.
        for witness in witnesses.dropFirst() { witness.manner = .honest }
        try await until { try await log.checkpoint()?.note.signatures.count == 1 + witnesses.count }
        #expect(try await log.end() == .exit(0))
        for witness in witnesses {
          #expect(witness.contradictions == 0)
          for note in witness.asked { try reader.see(note.bytes) }
        }
        try await traffic.expectAll(seenBy: reader)
      }
    }
  }

  /// The program is killed before the witness has answered; then nothing happens any more, but for the witness's return.
  /// What stood in the file of the last cosigned checkpoint is damaged, or is of a larger log.
  @Test(arguments: [0, 1_000_000])
  func aCheckpointThatNobodyHasCosignedIsShownToWitnessesAfterAStart(size: Int) async throws {
    try await AuditTraffic.run(in: files) { stage, traffic in
      try await TestWitness.run([("good", .hanging)], of: stage.auditKey.key) { witnesses in
        try stage.haveWitnessed(by: witnesses)
        let first = try await stage.startAuditLog()
        try await traffic.put(3)
        try await first.untilPublished(traffic.entryCount)
        try await until { witnesses[0].asked.count > 0 }
        await first.program.kill()
        witnesses[0].manner = .honest
        // As a disk may leave it that was not well: nothing depends on it.
        let name = stage.auditKey.key.name
        let other = "\(name)\n\(size)\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— \(name) AAAAAAAAAAA=\n"
        try Data(size == 0 ? [] : Array(other.utf8)).write(
          to: URL(fileURLWithPath: "\(stage.auditLog)/\(LogPath.witnessed)"))
        let second = try await stage.startAuditLog()
        try await until {
          let witnessed = try await second.read(LogPath.witnessed) ?? []
          return String(decoding: witnessed, as: UTF8.self).contains("\n\(traffic.entryCount)\n")
        }
        let note = try #require(try await second.checkpoint()).note
        #expect(try note.verified(by: [witnesses[0].key]).count == 1)
        #expect(try await second.end() == .exit(0))
      }
    }
  }
}
