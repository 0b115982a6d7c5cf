import Foundation
import TestSupport
import Testing

@testable import TransparencyLog

/// What we write, as Go's implementation reads it, and what Go writes, as ours does.
@Suite(GoJudge.isThere, .timeLimit(.minutes(10))) struct GoTests {
  private static let origin = "example.com/log"
  private let files = TemporaryDirectory()
  private let signer: NoteSigner
  private let privateKey: String
  private let witness: Cosigner

  init() throws {
    (signer, privateKey) = try NoteSigner.generate(name: Self.origin)
    witness = try Cosigner(name: "witness.example/1", seed: [UInt8](repeating: 9, count: 32))
  }

  private var path: String { files.path + "/log" }
  private var keys: [VerifierKey] { [signer.key, witness.key] }

  /// Writes a log, signed and cosigned, in steps of several checkpoints.
  private func write(_ sizes: [Int], _ entry: (Int) -> [UInt8]) async throws {
    let writer = try LogWriter(opening: path, origin: Self.origin)
    for size in sizes {
      while writer.size < UInt64(size) { _ = try writer.append(entry(Int(writer.size))) }
      let note = try await SignedNote.sign(try writer.flush().text, with: signer)
      let cosignature = try witness.cosign(note.text, at: 1_800_000_000)
      try writer.publish(SignedNote(text: note.text, note.signatures + [cosignature]))
    }
  }

  private func verdict(since older: [TreeHead] = []) async throws -> Result<VerifiedLog, LogFinding> {
    let trust = try LogTrust(
      origin: Self.origin, key: signer.key, policy: WitnessPolicy(1, of: [witness.key]))
    return try await LogView.verify(
      LogDirectory(path), trusting: trust, since: older, progress: { _, _ in }, entry: { _, _ in })
  }

  @Test(arguments: [[0], [1], [2], [255], [256], [257], [100, 300, 600, 700], [65_000, 66_000]])
  func goFindsNothingWrongWithOurLogs(sizes: [Int]) async throws {
    try await write(sizes) { Array("entry \($0)".utf8) }
    #expect(try await GoJudge.verify(path, Self.origin, keys) == "ok \(sizes.last ?? 0)")
    let outcome = try await verdict()
    #expect(throws: Never.self) { try outcome.get() }
    let stranger = try NoteSigner.generate(name: Self.origin).signer.key
    #expect(try await GoJudge.verify(path, Self.origin, [stranger]).hasPrefix("no checkpoint: "))
  }

  /// What somebody may do to a log who has its files.
  enum Tampering: String, CaseIterable {
    case entryChanged, lengthChanged, lastEntryChanged, leafHashChanged, partialLeafHashChanged, upperHashChanged
    case entryRemoved, lastEntryRemoved, entriesExchanged, entryRepeated, bundleMissing, tileMissing, newestCutOff
    case sizeForged, rootForged, signatureForged, foreignKey, checkpointMissing, replacedWithTile, replacedUpToRoot
  }

  @Test(arguments: Tampering.allCases)
  func bothSayNoAndWhere(tampering: Tampering) async throws {
    try await write([300, 700]) { sampleEntries(700)[$0] }
    let (ours, go) = try await tamper(tampering)
    let outcome = try await verdict()
    let finding = #expect(throws: LogFinding.self) { try outcome.get() }
    #expect(finding.map { "\($0)" }?.hasPrefix(ours) == true, "\(finding.map { "\($0)" } ?? "it holds")")
    let judgement = try await GoJudge.verify(path, Self.origin, keys)
    #expect(judgement.hasPrefix("no \(go)"), "\(judgement)")
  }

  /// Does it, and returns what we have to find, and Go.
  private func tamper(_ tampering: Tampering) async throws -> (ours: String, go: String) {
    let bundle = "tile/entries/001"
    switch tampering {
    case .entryChanged:
      try change(bundle) { bytes in bytes[EntryBundle(bytes).entries[44].lowerBound] ^= 1 }
      return ("wrong-entry: \(bundle), entry 300:", "\(bundle), entry 300:")
    case .lengthChanged:
      try change(bundle) { bytes in bytes[EntryBundle(bytes).entries[44].lowerBound - 1] ^= 1 }
      return ("wrong-entry: \(bundle), entry 300:", "\(bundle), entry 300:")
    case .lastEntryChanged:
      try change("tile/entries/002.p/188") { bytes in bytes[bytes.count - 1] ^= 1 }
      return ("wrong-entry: tile/entries/002.p/188, entry 699:", "tile/entries/002.p/188, entry 699:")
    case .leafHashChanged:
      try change("tile/0/001") { bytes in bytes[44 * 32] ^= 1 }
      return ("wrong-hash: tile/0/001, entry 300:", "\(bundle), entry 300:")
    case .partialLeafHashChanged:
      try change("tile/0/002.p/188") { bytes in bytes[0] ^= 1 }
      return ("wrong-hash: tile/0/002.p/188, entry 512:", "tile/entries/002.p/188, entry 512:")
    case .upperHashChanged:
      try change("tile/1/000.p/2") { bytes in bytes[32] ^= 1 }
      return ("wrong-hash: tile/1/000.p/2, entry 256:", "tile/1/000.p/2: hash 1")
    case .entryRemoved:
      try changeEntries { $0.remove(at: 44) }
      return ("wrong-entry: \(bundle), entry 300:", "\(bundle), entry 300:")
    case .lastEntryRemoved:
      try changeEntries { $0.removeLast() }
      return ("wrong-count: \(bundle), entry 511:", "\(bundle), entry 511:")
    case .entriesExchanged:
      try changeEntries { $0.swapAt(44, 100) }
      return ("wrong-entry: \(bundle), entry 300:", "\(bundle), entry 300:")
    case .entryRepeated:
      try changeEntries { $0.insert($0[44], at: 44) }
      return ("wrong-entry: \(bundle), entry 301:", "\(bundle), entry 301:")
    case .bundleMissing:
      try FileManager.default.removeItem(atPath: "\(path)/\(bundle)")
      return ("missing: \(bundle), entry 256:", "\(bundle): missing")
    case .tileMissing:
      try FileManager.default.removeItem(atPath: "\(path)/tile/0/001")
      return ("missing: tile/0/001, entry 256:", "tile/0/001: missing")
    case .newestCutOff:
      // The files of 600 entries, with the checkpoint of 700.
      for name in ["tile/0/002.p/188", "tile/entries/002.p/188"] {
        try FileManager.default.moveItem(atPath: "\(path)/\(name)", toPath: "\(path)/\(name.dropLast(3))88")
      }
      return ("missing: tile/entries/002.p/188, entry 512:", "tile/entries/002.p/188: missing")
    case .sizeForged:
      try change("checkpoint") { bytes in
        bytes = Array(String(decoding: bytes, as: UTF8.self).replacing("\n700\n", with: "\n600\n").utf8)
      }
      return ("bad-signature: checkpoint:", "checkpoint: invalid signature")
    case .rootForged:
      let other = TreeHead(size: 700, root: .leaf([1]))
      try await sign(other)
      return ("wrong-root: checkpoint:", "checkpoint: it has another root")
    case .signatureForged:
      try change("checkpoint") { bytes in
        let note = try SignedNote(bytes)
        var signature = note.signatures[0].bytes
        signature[20] ^= 1
        bytes = try SignedNote(
          text: note.text, [NoteSignature(by: signer.key, signature), note.signatures[1]]
        ).bytes
      }
      return ("bad-signature: checkpoint:", "checkpoint: invalid signature")
    case .foreignKey:
      let stranger = try NoteSigner.generate(name: Self.origin).signer
      let text = Checkpoint(origin: Self.origin, head: .empty).text
      _ = files.write("log/checkpoint", try await SignedNote.sign(text, with: stranger).bytes)
      return ("unsigned: checkpoint:", "checkpoint: note has no verifiable signatures")
    case .checkpointMissing:
      try FileManager.default.removeItem(atPath: "\(path)/checkpoint")
      return ("missing: checkpoint:", "checkpoint: checkpoint: missing")
    case .replacedWithTile:
      try replace([bundle, "tile/0/001"])
      return ("wrong-hash: tile/1/000.p/2, entry 256:", "tile/1/000.p/2: hash 1")
    case .replacedUpToRoot:
      try replace([bundle, "tile/0/001", "tile/1/000.p/2"])
      return ("wrong-root: checkpoint:", "checkpoint: it has another root")
    }
  }

  private func change(_ name: String, _ body: (inout [UInt8]) throws -> Void) throws {
    var bytes = try #require(try LogDirectory(path).contents(of: name, limit: 1 << 20))
    try body(&bytes)
    _ = files.write("log/\(name)", bytes)
  }

  private func changeEntries(_ body: (inout [[UInt8]]) -> Void) throws {
    try change("tile/entries/001") { bytes in
      var entries = EntryBundle(bytes).entries.map { Array(bytes[$0]) }
      body(&entries)
      bytes = []
      for entry in entries { EntryBundle.append(entry, to: &bytes) }
    }
  }

  private func sign(_ head: TreeHead) async throws {
    let note = try await SignedNote.sign(Checkpoint(origin: Self.origin, head: head).text, with: signer)
    let cosigned = try SignedNote(text: note.text, note.signatures + [witness.cosign(note.text, at: 1)])
    _ = files.write("log/checkpoint", cosigned.bytes)
  }

  /// Replaces files with those of a log that has another entry 300.
  private func replace(_ names: [String]) throws {
    var entries = sampleEntries(700)
    entries[300] = Array("another".utf8)
    let forged = MemoryLog(entries)
    for name in names { _ = files.write("log/\(name)", try #require(forged[name])) }
  }

  /// The newest hundred cut off with an older checkpoint that was signed, and two checkpoints of one size.
  @Test func bothSayNoToALogThatDoesNotContinueWhatItWas() async throws {
    try await write([600]) { sampleEntries(700)[$0] }
    let tree = NaiveTree(entries: sampleEntries(700))
    let (old, now, other) = (tree.head(700), tree.head(600), TreeHead(size: 600, root: tree.head(599).root))
    for (older, kind) in [(old, LogFinding.Kind.shrunk), (other, .splitView)] {
      let outcome = try await verdict(since: [older])
      let finding = #expect(throws: LogFinding.self) { try outcome.get() }
      #expect(finding?.kind == kind)
      let line = "consistency \(older.size) \(older.root) \(now.size) \(now.root) "
      #expect(try await GoJudge.answers(["check"], to: [line]) == ["no"])
    }
    let outcome = try await verdict(since: [now, tree.head(599)])
    #expect(throws: Never.self) { try outcome.get() }
  }

  @Test func ourProofsAreGoesProofs() async throws {
    let size = 600
    try await write([size]) { sampleEntries(size)[$0] }
    let tree = NaiveTree(entries: sampleEntries(size))
    let (head, directory) = (tree.head(size), LogDirectory(path))
    let view = LogView(directory, at: head)
    var (questions, checks, ours) = ([String](), [String](), [String]())
    for number in Array(1..<40) + [255, 256, 257, 400, 511, 512, 513, 598, 599] {
      let (leaf, inclusion) = try await view.inclusionProof(of: UInt64(number))
      let (older, consistency) = try await view.consistencyProof(from: UInt64(number))
      let hashes = [inclusion.hashes, consistency.hashes].map { $0.map(\.description).joined(separator: ",") }
      questions += ["inclusion \(number)", "consistency \(number)"]
      ours += hashes
      checks.append("inclusion \(number) \(leaf) \(size) \(head.root) \(hashes[0])")
      checks.append("consistency \(number) \(older.root) \(size) \(head.root) \(hashes[1])")
    }
    #expect(try await GoJudge.answers(["prove", path, "\(size)", "\(head.root)"], to: questions) == ours)
    #expect(try await GoJudge.answers(["check"], to: checks) == checks.map { _ in "yes" })
  }

  @Test func everySmallProofIsRightInTheEyesOfGo() async throws {
    let entries = sampleEntries(24)
    let tree = NaiveTree(entries: entries)
    var lines: [String] = []
    for size in 1...24 {
      let (head, view) = (tree.head(size), LogView(MemoryLog(Array(entries.prefix(size))), at: tree.head(size)))
      for number in 0..<UInt64(size) {
        let (leaf, inclusion) = try await view.inclusionProof(of: number)
        let (older, consistency) = try await view.consistencyProof(from: number + 1)
        let hashes = [inclusion.hashes, consistency.hashes].map { $0.map(\.description).joined(separator: ",") }
        lines.append("inclusion \(number) \(leaf) \(size) \(head.root) \(hashes[0])")
        lines.append("consistency \(number + 1) \(older.root) \(size) \(head.root) \(hashes[1])")
      }
    }
    let answers = try await GoJudge.answers(["check"], to: lines)
    #expect(answers.count == lines.count && zip(lines, answers).filter { $1 != "yes" }.map(\.0) == [])
    let wrong = lines.map { $0.replacing(" \(tree.head(24).root) ", with: " \(tree.head(23).root) ") }
    #expect(try await GoJudge.answers(["check"], to: wrong).contains("no"))
  }

  @Test func goSignsWithOurKeysAsWeDo() async throws {
    let text = "example.com/log\n0\n\(MerkleHash.empty)\n"
    let signed = try await GoJudge.run(["sign", privateKey], input: text, accepting: [0])
    #expect(try await SignedNote.sign(Array(text.utf8), with: signer).bytes == Array("\(signed)\n".utf8))
  }
}
