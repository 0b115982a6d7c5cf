import AccountServices
import AuditSupport
import EventLoop
import Foundation
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// `siwa audit check` once the key of the log was rotated: a receipt has to be as good as on the day when it was made, and
/// one that was made with a stolen key has to be none.
@Loop @Suite(.serialized, .timeLimit(.minutes(30))) struct AuditReceiptTests {
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
      try await program.outcome()
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

  /// It is no misfit: its witnesses have seen more than readers of the log are shown to be cosigned.
  @Test func aReceiptAheadOfWhatIsCosignedIsToBeCheckedLater() async throws {
    let (entries, now) = (history(400), UInt64(Date.now.timeIntervalSince1970))
    func cosigned(_ note: SignedNote) throws -> SignedNote {
      try SignedNote(text: note.text, note.signatures + [log.witness.cosign(note.text, at: now)])
    }
    let writer = try log.writer()
    for size in [300, 400] {
      while writer.size < UInt64(size) { _ = try writer.append(entries[Int(writer.size)].bytes) }
      let note = try await SignedNote.sign(try writer.flush().text, with: log.signer)
      try writer.publish(note)
      if size == 300 { try writer.publish(witnessed: try cosigned(note)) }
    }
    let view = LogView(LogDirectory(log.path), at: writer.flushed.head)
    let note = try cosigned(try #require(writer.published))
    let inclusion = try await view.inclusionProof(of: 350).proof
    let receipt = files.write(
      "ahead", LogProof(extra: entries[350].bytes, index: 350, inclusion: inclusion, note: note).bytes)
    #expect(try await check(receipt, "--witness", log.witness.key.text) == .exit(0))
    let early = try await check(receipt, ["--log", log.path, "--witness", log.witness.key.text])
    let words = "cosigned 300 of the log's 400 so far: check it again later"
    #expect(early.end == .exit(1) && early.errors.contains(words), "\(early)")
    try writer.publish(note)
    #expect(try await check(receipt, "--log", log.path, "--witness", log.witness.key.text) == .exit(0))
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
