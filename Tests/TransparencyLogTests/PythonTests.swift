import LogSupport
import TestSupport
import Testing

@testable import TransparencyLog

/// What we write, as `docs/verify.py` judges it, which shares nothing with us.
@Suite(Python.isThere, .timeLimit(.minutes(30))) struct PythonTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog

  init() throws { log = try SampleLog(in: files.path + "/log") }

  private func verify(_ words: String...) async throws -> (code: RunningProgram.End, words: String) {
    let outcome = try await Python.run("docs/verify.py", words + ["--vkey", log.signer.key.text])
    return (outcome.end, outcome.end == .exit(0) ? String(decoding: outcome.output, as: UTF8.self) : outcome.errors)
  }

  @Test(arguments: [[0], [1], [2], [255], [256], [257], [100, 300, 600, 700], [65_535, 65_536, 66_000]])
  func pythonFindsNothingWrongWithOurLogs(sizes: [Int]) async throws {
    try await log.write(sizes) { Array("entry \($0)".utf8) }
    let plain = try await verify("log", log.path)
    #expect(plain.code == .exit(0) && plain.words.hasSuffix("All \(sizes.last ?? 0) entries hold.\n"), "\(plain)")
    let cosigned = try await verify("log", log.path, "--witness", log.witness.key.text)
    #expect(cosigned.code == .exit(0) && cosigned.words.contains("cosigned by 1\n"), "\(cosigned)")
  }

  @Test func itComparesWithOlderCheckpoints() async throws {
    try await log.write([300], sampleEntry)
    let old = files.write("old", try log.bytes(of: LogPath.checkpoint))
    try await log.write([700], sampleEntry)
    let newest = files.write("newest", try log.bytes(of: LogPath.checkpoint))
    let continued = try await verify("log", log.path, "--since", old, "--since", newest)
    #expect(continued.code == .exit(0), "\(continued)")

    let other = try SampleLog(in: files.path + "/other", signer: log)
    try await other.write([300, 700]) { $0 == 299 ? [1] : sampleEntry($0) }
    for (path, words) in [
      (old, "the first 300 entries are not those of an older checkpoint"),
      (newest, "checkpoint: not the tree, or not all of it, of 700 entries"),
    ] {
      let outcome = try await verify("log", other.path, "--since", path)
      #expect(outcome.code == .exit(1) && outcome.words.contains("NO: \(words)"), "\(outcome)")
    }
    let shorter = try SampleLog(in: files.path + "/shorter", signer: log)
    try await shorter.write([600], sampleEntry)
    let cut = try await verify("log", shorter.path, "--since", newest)
    #expect(cut.code == .exit(1) && cut.words.contains("of 700 entries"), "\(cut)")
  }

  @Test func itAsksForWitnesses() async throws {
    try await log.write([3], sampleEntry)
    let stranger = try Cosigner(name: "witness.example/2", seed: [UInt8](repeating: 8, count: 32)).key.text
    let witness = log.witness.key.text
    #expect(
      try await verify("log", log.path, "--witness", witness, "--witness", stranger, "--quorum", "1").code == .exit(0))
    for words in [["--witness", witness, "--witness", stranger], ["--witness", stranger]] {
      let outcome = try await Python.run(
        "docs/verify.py", ["log", log.path, "--vkey", log.signer.key.text] + words)
      #expect(outcome.end == .exit(1) && outcome.errors.contains("checkpoint: cosigned by "), "\(outcome)")
    }
  }

  @Test func itFollowsRotationsOfTheKey() async throws {
    try await log.write([300], sampleEntry)
    let writer = try log.writer()
    let next = try NoteSigner.generate(name: SampleLog.origin).signer
    let rotation = try await KeyRotation.sign(writer.flushed, from: log.signer, to: next)
    try writer.publish(try KeyHistory().appending(rotation))
    #expect(try await verify("log", log.path).code == .exit(0), "either key may have signed this tree")
    _ = try writer.append([1])
    let checkpoint = try writer.flush()
    try writer.publish(try await SignedNote.sign(checkpoint.text, with: log.signer))
    let old = try await verify("log", log.path)
    #expect(old.code == .exit(1) && old.words.contains("not signed by the key"), "\(old)")
    try writer.publish(try await SignedNote.sign(checkpoint.text, with: next))
    #expect(try await verify("log", log.path).code == .exit(0))
    let stranger = try NoteSigner.generate(name: SampleLog.origin).signer
    for (from, to) in [(stranger, next), (log.signer, stranger)] {
      let rotation = try await KeyRotation.sign(checkpoint, from: from, to: to)
      log.replace(LogPath.keys, with: rotation.note.bytes)
      let outcome = try await verify("log", log.path)
      #expect(outcome.code == .exit(1), "\(outcome)")
    }
    log.replace(LogPath.keys, with: [1])
    #expect(try await verify("log", log.path).code == .exit(1))
  }

  @Test(arguments: [1, 2, 3, 255, 256, 257, 300])
  func itChecksReceipts(size: Int) async throws {
    try await log.write([size]) { Array(#"{"n":\#($0)}"#.utf8) }
    let note = try SignedNote(try log.bytes(of: LogPath.checkpoint))
    let view = LogView(LogDirectory(log.path), at: try Checkpoint(note.text).head)
    for index in Set([0, size / 2, size - 1]) {
      let entry = try await view.entry(at: UInt64(index))
      let (_, inclusion) = try await view.inclusionProof(of: UInt64(index))
      let proof = LogProof(extra: entry, index: UInt64(index), inclusion: inclusion, note: note)
      let good = try await verify("receipt", files.write("good", proof.bytes))
      #expect(good.code == .exit(0) && good.words.contains(#""n": \#(index)"#), "\(good)")
      let wrong = [
        LogProof(extra: entry + [0x20], index: UInt64(index), inclusion: inclusion, note: note),
        LogProof(extra: entry, index: UInt64(index) + 1, inclusion: inclusion, note: note),
        LogProof(extra: entry, index: UInt64(size), inclusion: inclusion, note: note),
        LogProof(
          extra: entry, index: UInt64(index), inclusion: InclusionProof(inclusion.hashes + [.empty]), note: note),
        LogProof(
          extra: entry, index: UInt64(index), inclusion: inclusion,
          note: try await log.note(on: Checkpoint(origin: SampleLog.origin, head: TreeHead(size: 7, root: .leaf([]))))),
        LogProof(extra: nil, index: UInt64(index), inclusion: inclusion, note: note),
      ]
      for (number, proof) in wrong.enumerated() {
        let outcome = try await verify("receipt", files.write("wrong", proof.bytes))
        #expect(outcome.code == .exit(1) && outcome.words.hasPrefix("NO: "), "\(number): \(outcome)")
      }
    }
  }

  @Test func whatCannotBeReadIsNoVerdict() async throws {
    let outcome = try await verify("log", files.path + "/none")
    #expect(outcome.code == .exit(3), "\(outcome)")
    _ = files.write("half.tar", [UInt8](repeating: 1, count: 700))
    for words in [["log", files.path + "/half.tar"], ["receipt", files.path + "/half.tar"]] {
      let outcome = try await Python.run("docs/verify.py", words + ["--vkey", log.signer.key.text])
      #expect(outcome.end == .exit(1) && outcome.errors.hasPrefix("NO: "), "\(outcome)")
    }
  }
}
