import AccountEvents
import AccountServices
import EventLoop
import Foundation
import TestSupport
import Testing
import TransparencyLog

/// The audit log beside a trial of the ingress: it reads while brokers break, and is killed now and then itself.
@Loop
final class TrialAudit {
  /// How often it was started.
  private(set) var starts = 0
  private let stage: Stage
  private let key: NoteSigner
  private let reader: CheckpointReader
  private let environment: [String: String]
  private var log: RunningAuditLog?
  private var directory: String { stage.files.path + "/audit-log" }

  /// Makes what it needs, and starts it.
  init(_ stage: Stage) async throws {
    self.stage = stage
    let (signer, privateKey) = try NoteSigner.generate(name: "example.com/audit")
    key = signer
    reader = try CheckpointReader(signer.key, files: stage.files)
    let (folder, masterKey) = (stage.files.path, stage.files.path + "/master-key")
    environment = stage.environment.merging([
      "SIWA_STORE_SQLITE": folder + "/store.sqlite", "SIWA_STORE_MASTER_KEY": masterKey,
      "SIWA_AUDIT_LOG_DIRECTORY": folder + "/audit-log", "SIWA_AUDIT_LOG_ORIGIN": signer.key.name,
      "SIWA_AUDIT_LOG_PRIVATE_KEY": privateKey,
      "SIWA_AUDIT_LOG_LISTEN": "127.0.0.1:0", "SIWA_AUDIT_LOG_ADMIN": "127.0.0.1:0",
      "SIWA_AUDIT_LOG_INTERVAL": "500ms", "SIWA_LOG_LEVEL": "info",
    ]) { $1 }
    for words in [["store", "create-key", masterKey], ["store", "begin"], ["audit", "begin"]] {
      let made = try await RunningProgram.run("siwa", words, environment) { program in
        (end: try await program.untilEnd(), errors: program.errors)
      }
      try #require(made.end == .exit(0), "\(words): \(made.errors)")
    }
    try await start()
  }

  private func start() async throws {
    let program = try RunningProgram(RunningProgram.path(of: "siwa-audit-log"), [], environment)
    let log = try await RunningAuditLog(program)
    reader.follow(log)
    self.log = log
    starts += 1
  }

  /// Kills it as a power cut would, and starts it again.
  func killAndStart() async throws {
    await kill()
    try await start()
  }

  /// Kills it.
  func kill() async {
    await log?.program.kill()
    log = nil
  }

  /// Waits until it has read all, ends it, and looks at what it has: one obligation for each event on the topic, each
  /// signature verified, and all that a reader ever saw of it continued. Returns how many of the trial's events it has.
  func check(_ history: EventHistory, of trial: UInt64) async throws -> Int {
    let program = try #require(log)
    let expected = history.eventsOnTopic
    try await until(within: .seconds(1800), every: .milliseconds(500)) {
      let lag = try await program.administration.metric(#"siwa_audit_log_lag{topic="apple.account-events.v1"}"#)
      let waiting = try await program.administration.metric("siwa_audit_log_waiting_seconds")
      let size = try await program.checkpoint()?.checkpoint.size ?? 0
      return lag == 0 && waiting == 0 && size >= UInt64(expected)
    }
    for signature in ["refused", "unknown-key", "none"] {
      let name = #"siwa_audit_log_signatures_total{signature="\#(signature)"}"#
      #expect(try await program.administration.metric(name) == 0)
    }
    #expect(try await program.end() == .exit(0), "\(program.program.errors.suffix(2000))")
    try await reader.stop()
    try await reader.expectContinued(by: directory)
    var counts = [UInt8](repeating: 0, count: history.size)
    var gaps = 0
    let trust = try LogTrust(origin: key.key.name, key: key.key, policy: .none)
    let log = try await AuditLog.open(LogDirectory(directory), trusting: trust)
    func count(_ index: UInt64, _ entry: AuditEntry) {
      if case .gap = entry { gaps += 1 }
      guard let id = entry.event?.text, let event = SentEvent(jti: id), event.trial == trial,
        let place = history.place(user: event.user, number: event.number)
      else { return }
      counts[place] = min(counts[place], 254) + 1
    }
    try await log.entries(progress: { _, _ in }, count)
    #expect(gaps == 0, "the log has seen everything")
    let wrong = counts.indices.filter { counts[$0] != (history.isOnTopic[$0] ? 1 : 0) }
    #expect(wrong.isEmpty, "\(wrong.count) events have not one obligation, but \(wrong.prefix(3).map { counts[$0] })")
    return counts.count { $0 > 0 }
  }
}
