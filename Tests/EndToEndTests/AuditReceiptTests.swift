import AccountServices
import AuditSupport
import EventLoop
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// `siwa audit check` once the key of the log was rotated: a receipt has to be as good as on the day when it was made, and
/// one that was made with a stolen key has to be none.
@Loop @Suite(.serialized, .timeLimit(.minutes(10))) struct AuditReceiptTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog
  private let next: NoteSigner

  init() throws {
    log = try SampleLog(in: files.path + "/log")
    next = try NoteSigner.generate(name: SampleLog.origin).signer
  }

  private func check(_ receipt: String, _ words: String...) async throws -> RunningProgram.End {
    try await check(receipt, words).end
  }

  private func check(
    _ receipt: String, _ words: [String]
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    let arguments = ["audit", "check", receipt, "--vkey", log.signer.key.text] + words
    return try await RunningProgram.run("siwa", arguments, [:]) { program in
      (try await program.untilEnd(), program.output, program.errors)
    }
  }

  /// Writes a receipt of an entry of the log, as it is, by the checkpoint that is published.
  private func receipt(_ name: String, of index: Int, in log: SampleLog, _ entries: [AuditEntry]) async throws -> String
  {
    let note = try SignedNote(log.bytes(of: LogPath.checkpoint))
    let view = LogView(LogDirectory(log.path), at: try Checkpoint(note.text).head)
    let inclusion = try await view.inclusionProof(of: UInt64(index)).proof
    let proof = LogProof(extra: entries[index].bytes, index: UInt64(index), inclusion: inclusion, note: note)
    return files.write(name, proof.bytes)
  }

  private func history(_ count: Int) -> [AuditEntry] {
    var history = SampleHistory()
    for number in 0..<count { history.comes("event-\(number)", at: Double(number)) }
    return history.entries
  }

  /// The old key signs for the new one, at the tree that is published.
  private func rotate() async throws -> String {
    let writer = try log.writer()
    let rotation = try await KeyRotation.sign(writer.flushed, from: log.signer, to: next)
    try writer.publish(try KeyHistory().appending(rotation))
    return log.path + "/" + LogPath.keys
  }

  /// Entries of after the rotation, by the new key.
  private func grow(to entries: [AuditEntry]) async throws {
    let writer = try log.writer()
    while writer.size < UInt64(entries.count) { _ = try writer.append(entries[Int(writer.size)].bytes) }
    try writer.publish(try await SignedNote.sign(try writer.flush().text, with: next))
  }

  @Test(Python.isThere) func aReceiptFromBeforeTheRotationIsProvenByTheLog() async throws {
    let entries = history(700)
    try await log.write([300]) { entries[$0].bytes }
    let old = try await receipt("old", of: 7, in: log, entries)
    try await log.write([400]) { entries[$0].bytes }
    let keys = try await rotate()
    try await grow(to: entries)
    let new = try await receipt("new", of: 650, in: log, entries)
    let bundle = files.path + "/audit.tar"
    let bundled = try await RunningProgram.run(
      "siwa",
      ["audit", "bundle", "--log", log.path, "--vkey", log.signer.key.text, "--without-apple-keys", "-o", bundle]
    ) { program in try await program.untilEnd() }
    #expect(bundled == .exit(0))

    // Who does not know of the rotation cannot believe the new key, and has no reason to doubt the old one.
    #expect(try await check(new) == .exit(1))
    #expect(try await check(old) == .exit(0))
    #expect(try await check(new, "--keys", keys) == .exit(0))
    let doubted = try await check(old, ["--keys", keys])
    #expect(
      doubted.end == .exit(1)
        && doubted.errors.contains("NO: unproven: the key that signed was replaced at 400 entries"))
    #expect(try await check(old, "--keys", keys, "--witness", log.witness.key.text) == .exit(0))
    for place in [log.path, bundle] {
      let proven = try await check(old, ["--log", place])
      #expect(proven.end == .exit(0), "\(proven)")
      #expect(proven.output.contains("\nContinued   by the log of 700 entries, root "), "\(proven)")
      #expect(try await check(new, "--log", place) == .exit(0))
    }
    let judge = ["--vkey", log.signer.key.text, "--keys", keys]
    #expect(try await Python.run("docs/verify.py", ["receipt", new] + judge).end == .exit(0))
    let judged = try await Python.run("docs/verify.py", ["receipt", old] + judge)
    #expect(judged.end == .exit(1) && judged.errors.contains("NO: the key that signed was replaced at 400 entries"))
    let vouched = try await Python.run("docs/verify.py", ["receipt", old, "--witness", log.witness.key.text] + judge)
    #expect(vouched.end == .exit(0), "\(vouched.errors)")
  }

  @Test func aReceiptByAThiefOfTheReplacedKeyIsNone() async throws {
    let entries = history(400)
    try await log.write([400]) { entries[$0].bytes }
    _ = try await rotate()
    // With the old key, of a tree that the log has never shown.
    let forgery = try SampleLog(in: files.path + "/forgery", signer: log)
    let others = Array(history(301).dropFirst())
    try await forgery.write([300]) { others[$0].bytes }
    let forged = try await receipt("forged", of: 7, in: forgery, others)
    #expect(try await check(forged) == .exit(0), "by the key alone it holds")
    let judged = try await check(forged, ["--log", log.path])
    #expect(judged.end == .exit(1) && judged.errors.contains("does not begin with the 300 entries"), "\(judged)")
  }

  @Test func aLogThatIsShorterThanItsReceiptProvesNothing() async throws {
    let entries = history(400)
    try await log.write([300]) { entries[$0].bytes }
    let longer = try SampleLog(in: files.path + "/longer", signer: log)
    try await longer.write([400]) { entries[$0].bytes }
    let receipt = try await receipt("receipt", of: 350, in: longer, entries)
    #expect(try await check(receipt) == .exit(0))
    #expect(try await check(receipt, "--log", log.path) == .exit(1))
    #expect(try await check(receipt, "--log", "http://127.0.0.1:9/log") == .exit(3))
  }
}
