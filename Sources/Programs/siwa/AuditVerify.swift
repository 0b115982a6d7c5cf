import AccountEvents
import AccountServices
import Configuration
import EventLoop
import Kafka
import TransparencyLog

/// `siwa audit verify`: whether all of the log holds.
struct AuditVerify: Command {
  static let name = "audit verify"
  static let summary =
    "Verifies all of an audit log: signatures, every entry, every hash, and that nothing was rewritten."
  static let details = """
    The log's first key decides what is believed: have it from somebody else than the log. Rotations of the key are
    followed. The first place that does not fit is named, and what kind of misfit it is.

    A log that is whole today may be another one than yesterday's. Keep each checkpoint that you have seen, and give it to
    the next verification: it says whether the log begins with all that it had, whether entries were taken off its end, and
    whether you were shown another log than before. Witnesses do that for everybody, if the log has them cosign.

    With --records the records of apple.account-events.v1 are read, as far as Kafka has them: each is the one whose SHA-256
    the log has, none is missing in the log, and Apple's signature is verified once more, with the keys on
    apple.signing-keys.v1.

    Exit codes: 0 all of it holds, 1 something does not, 2 the command line or the configuration makes no sense, 3 the log
    or Kafka cannot be read, or the file of --keep not be written.

    """
  static let examples = [
    CommandExample(
      "siwa audit verify --log https://audit.example.com/siwa --vkey VKEY --keep checkpoint",
      "The first time: keeps the checkpoint that was verified."),
    CommandExample(
      "siwa audit verify --log https://audit.example.com/siwa --vkey VKEY --since checkpoint --keep checkpoint",
      "From then on: also that the log continues what it was."),
    CommandExample(
      "siwa audit verify --log audit.tar --vkey VKEY --witness VKEY --witness VKEY --quorum 1", "A bundle."),
    CommandExample("siwa audit verify --records", "On the operator's side, with /etc/siwa/siwa.yaml."),
  ]

  private let access: AuditAccess
  private let older: [String]
  private let kept: String?
  private let comparesRecords: Bool

  init(reading arguments: inout CommandArguments) {
    access = AuditAccess(reading: &arguments)
    older = arguments.readAll("--since", "FILE", .path, "An older checkpoint that you have kept; may be repeated.")
    kept = arguments.readIfPresent("--keep", "FILE", .path, "Writes the checkpoint that was verified to a file.")
    comparesRecords = arguments.flag(
      "--records", "Compares with the records in Kafka, and verifies Apple's signatures.")
  }

  func run() async -> ExitCode {
    await access.run { log in
      var comparison = comparesRecords ? try await RecordAccess(access.options).begin() : nil
      let older = try await heads(log)
      try await AuditBundle.verifyManifest(of: log.source)
      let bar = ProgressBar("entries")
      let result = try await LogView.verify(
        log.source, trusting: log.trust, since: older, progress: { bar.note(done: $0, of: $1) },
        entry: { try comparison?.take($1, at: $0) })
      bar.clear()
      let verified = try result.get()
      try AuditAccess.judgeStandIn(verified.checkpoint)
      say(verified, log, continuing: older)
      if let comparison, try await !comparison.run(on: AuditLog(verified, in: log.source)) { return .failure }
      if let kept {
        try OutputFile.writing(to: kept) { try DurableFile(path: kept).replace(with: verified.checkpoint.note.bytes) }
      }
      Terminal.say("All of it holds.")
      return .success
    }
  }

  /// The trees of the checkpoints that were kept, each of which the log has signed.
  private func heads(_ log: AuditAccess.Log) async throws -> [TreeHead] {
    if older.isEmpty { return [] }
    let trust = try await LogView.follow(log.trust, in: log.source)
    return try older.map { path in
      let bytes = try InputFile.read(path, limit: SignedNote.maximumByteCount)
      do throws(LogError) { return try trust.verify(SignedNote(bytes)).checkpoint.head } catch {
        throw LogError(error.code, path, error.detail)
      }
    }
  }

  private func say(_ verified: VerifiedLog, _ log: AuditAccess.Log, continuing older: [TreeHead]) {
    let checkpoint = verified.checkpoint
    let rotations = verified.trust.history.rotations.count
    var lines = [
      "Log         \(checkpoint.checkpoint.origin)", "Read from   \(log.place)",
      "Entries     \(checkpoint.checkpoint.size)", "Root        \(checkpoint.checkpoint.root)",
      "Signed by   \(checkpoint.key)\(rotations == 0 ? "" : ", after \(rotations) rotation\(rotations == 1 ? "" : "s") of the key")",
    ]
    if !log.trust.policy.witnesses.isEmpty {
      let names = Set(checkpoint.cosignatures.map(\.witness.name)).sorted().joined(separator: ", ")
      lines.append("Cosigned by \(names.isEmpty ? "nobody" : names)")
    }
    for head in older { lines.append("Continues   the \(head.size) entries of \(head.root)") }
    Terminal.say(lines.joined(separator: "\n"))
  }
}
