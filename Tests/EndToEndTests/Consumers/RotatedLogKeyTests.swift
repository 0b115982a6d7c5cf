import AppleSimulator
import EventLoop
import Foundation
import TestSupport
import Testing
import TransparencyLog

/// The audit log's key is rotated, as docs/audit.md tells an operator to do it.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct RotatedLogKeyTests {
  private let files = TemporaryDirectory()

  @Test func theReplacedKeySignsNothingAnyMoreAndTheNewOneGoesOn() async throws {
    try await ConsumerStage.run(in: files) { stage, _ in
      try await rotate(stage)
    }
  }

  private func rotate(_ stage: ConsumerStage) async throws {
    try await ask(stage, for: "ada")
    var log = try await stage.startAuditLog()
    // Who was asked for, and that somebody did.
    try await log.untilPublished(2)
    #expect(try await log.end() == .exit(0))
    let (old, new) = (files.path + "/audit-key", files.path + "/audit-key-2027")
    for words in [["create-key", stage.auditKey.key.name, new], ["rotate-key", "--old", old, "--new", new]] {
      let done = try await stage.siwa(["audit"] + words)
      #expect(done.end == .exit(0), "\(done)")
    }

    // The operator forgets to name the new file.
    try await ask(stage, for: "bob")
    log = try await stage.startAuditLog()
    _ = try await log.program.line(
      with: #""level":"error""#, "the audit log cannot go on", "which does not sign here: see audit-log.private-key")
    #expect(try await log.administration.get("/readyz").status == 503)
    #expect(try await log.checkpoint()?.checkpoint.size == 2, "what is published is served")
    #expect(try await log.end() == .exit(0))

    _ = files.write("audit-key", try String(contentsOfFile: new, encoding: .utf8))
    log = try await stage.startAuditLog()
    try await log.untilPublished(4)
    try await log.untilReadiness(is: true)
    let verified = try await stage.siwa("audit", "verify")
    #expect(verified.end == .exit(0) && verified.output.contains(", after 1 rotation of the key\n"), "\(verified)")
    #expect(try await log.end() == .exit(0))
  }

  private func ask(_ stage: ConsumerStage, for name: String) async throws {
    let asked = try await stage.siwa(
      "erase", "--team", AppleSide.team, "--sub", Person(named: name).subject, "--reason", "a letter", "--yes")
    #expect(asked.end == .exit(0), "\(asked)")
  }
}
