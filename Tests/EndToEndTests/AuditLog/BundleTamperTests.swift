import AccountEvents
import AccountServices
import AuditSupport
import ConsumerSupport
import EventLoop
import Kafka
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// A byte of a bundle that somebody has changed on its way: `siwa audit verify` and `docs/verify.py` say no, and where.
@Loop @Suite(Python.isThere, .serialized, .timeLimit(.minutes(30))) struct BundleTamperTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog

  init() throws { log = try SampleLog(in: files.path + "/log") }

  /// A place in a file of a bundle, and what is said of it.
  struct Change: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let file: String
    /// The byte: of the text that is found in the file, where there is one, or of the file itself.
    let text: String
    let byte: Int
    let ours: String
    let python: String

    init(
      _ name: String, _ file: String, in text: String = "", at byte: Int, ours: String, python: String
    ) {
      (testDescription, self.file, self.text, self.byte) = (name, file, text, byte)
      (self.ours, self.python) = (ours, python)
    }
  }

  private nonisolated static let tree = "manifest.json: it says another tree than the checkpoint"

  private nonisolated static func beside(_ file: String) -> String { "\(file): not the file that manifest.json names" }

  nonisolated static let changes = [
    Change(
      "an entry", "tile/entries/001", in: "entry 300 ", at: 3,
      ours: "siwa: NO: wrong-entry: tile/entries/001, entry 300:",
      python: "tile/0/001: hash 44 is not that of entry 300"),
    Change(
      "the last entry", "tile/entries/002.p/188", in: "entry 699 ", at: 0,
      ours: "siwa: NO: wrong-entry: tile/entries/002.p/188, entry 699:",
      python: "tile/0/002.p/188: hash 187 is not that of entry 699"),
    Change(
      "the length of an entry", "tile/entries/000", at: 1, ours: "siwa: NO: wrong-entry: tile/entries/000, entry 0:",
      python: "tile/entries/000: not 256 entries"),
    Change(
      "a hash", "tile/0/001", at: 44 * 32 + 7, ours: "siwa: NO: wrong-hash: tile/0/001, entry 300:",
      python: "tile/0/001: hash 44 is not that of entry 300"),
    Change(
      "a hash above", "tile/1/000.p/2", at: 63, ours: "siwa: NO: wrong-hash: tile/1/000.p/2, entry 256:",
      python: "tile/1/000.p/2: hash 1 is not that of tile 1 of level 0"),
    Change(
      "the checkpoint's size", LogPath.checkpoint, in: "\n700\n", at: 1,
      ours: "siwa: NO: malformed: \(beside("checkpoint"))",
      python: "checkpoint: the signature by \(SampleLog.origin)"),
    Change(
      "the log's signature", LogPath.checkpoint, in: "— \(SampleLog.origin) ", at: 50,
      ours: "siwa: NO: malformed: \(beside("checkpoint"))", python: "checkpoint: the signature by \(SampleLog.origin)"),
    Change(
      "a cosignature", LogPath.checkpoint, in: "— witness.example/1 ", at: 50,
      ours: "siwa: NO: malformed: \(beside("checkpoint"))",
      python: "checkpoint: the signature by witness.example/1"),
    Change(
      "a signature on the rotation of the key", LogPath.keys, in: "— \(SampleLog.origin) ", at: 50,
      ours: "siwa: NO: malformed: \(beside("keys"))", python: "keys: the signature by \(SampleLog.origin)"),
    Change(
      "a witness's key", "witnesses", at: 25, ours: "siwa: NO: malformed: \(beside("witnesses"))",
      python: beside("witnesses")),
    Change(
      "a key of Apple's", "apple-signing-keys.json", in: #""n":""#, at: 9,
      ours: "siwa: NO: malformed: \(beside("apple-signing-keys.json"))", python: beside("apple-signing-keys.json")),
    Change(
      "a digest in the manifest", "manifest.json", in: #""checkpoint":""#, at: 20,
      ours: "siwa: NO: malformed: \(beside("checkpoint"))",
      python: beside("checkpoint")),
    Change(
      "the manifest's size", "manifest.json", in: #""size":700"#, at: 7, ours: "siwa: NO: malformed: \(tree)",
      python: tree),
    Change(
      "the manifest's root", "manifest.json", in: #""root":""#, at: 12, ours: "siwa: NO: malformed: \(tree)",
      python: tree),
    Change(
      "the manifest's form", "manifest.json", at: 0, ours: "siwa: NO: malformed: manifest.json: no JSON",
      python: "manifest.json: "),
    Change(
      "the name of a file", "tile/0/001", at: -512,
      ours: "siwa: malformed: audit.tar: not an archive as `siwa audit bundle` writes it, at byte ",
      python: "tile/0/001: the file is not there"),
    Change(
      "the size of a file", "tile/entries/000", at: 130 - 512,
      ours: "siwa: malformed: audit.tar: not an archive as `siwa audit bundle` writes it, at byte ",
      python: "tile/entries/000: the file is not there"),
  ]

  @Test func aChangedByteIsRefusedByBothAndEachSaysWhere() async throws {
    let witness = ["--witness", log.witness.key.text]
    let path = try await bundle(witness)
    let good = try LogDirectory(files.path).contents(of: path, limit: 1 << 24) ?? []
    let whole = try await judge(path, witness)
    #expect(whole.ours.end == .exit(0) && whole.python.end == .exit(0), "\(whole)")
    for change in Self.changes {
      var bytes = good
      let place = try place(of: change, in: good)
      bytes[place] = Self.changed(bytes[place])
      _ = files.write(path, bytes)
      let (ours, python) = try await judge(path, witness)
      #expect(ours.end == .exit(1) && python.end == .exit(1), "\(change.testDescription): \(ours), \(python)")
      let words = change.ours.replacing("audit.tar", with: "\(files.path)/audit.tar")
      #expect(ours.errors.hasPrefix(words), "\(change.testDescription): \(ours.errors)")
      #expect(python.errors.hasPrefix("NO: \(change.python)"), "\(change.testDescription): \(python.errors)")
    }
    _ = files.write(path, good)
    #expect(try await judge(path, witness).ours.end == .exit(0), "it is as it was")
  }

  /// As `siwa audit bundle` writes it: of a log whose key was rotated, which a witness has cosigned, with Apple's keys, which
  /// are asked for in Kafka. Returns its name.
  private func bundle(_ witness: [String]) async throws -> String {
    try await log.write([300], sampleEntry)
    let (next, _) = try NoteSigner.generate(name: SampleLog.origin)
    do {
      let writer = try log.writer()
      let rotation = try await KeyRotation.sign(writer.flushed, from: log.signer, to: next)
      try writer.publish(try KeyHistory().appending(rotation))
      while writer.size < 700 { _ = try writer.append(sampleEntry(Int(writer.size))) }
      let note = try await SignedNote.sign(try writer.flush().text, with: next)
      try writer.publish(
        SignedNote(text: note.text, note.signatures + [log.witness.cosign(note.text, at: SampleLog.cosignedAt)]))
    }
    let cluster = try EmbeddedCluster(brokers: 1)
    try cluster.createTopic(Topic.signingKeys.name, partitions: 1)
    let producer = try Producer(
      KafkaConfiguration(properties: [("bootstrap.servers", cluster.bootstrapServers)]), deadline: .seconds(300),
      log: { _ in })
    _ = try await producer.send(try EventSigner().keyRecord)
    await producer.close(within: .seconds(10))
    let written = try await siwa(
      ["bundle", "-o", files.path + "/audit.tar", "--log", log.path, "--vkey", log.signer.key.text] + witness
        + ["--set", "kafka.bootstrap.servers=\(cluster.bootstrapServers)"])
    try #require(written.end == .exit(0), "\(written)")
    return "audit.tar"
  }

  private func place(of change: Change, in bundle: [UInt8]) throws -> Int {
    // Its name stands at the beginning of the header, which fills a block.
    let name = Array(change.file.utf8) + [0]
    let header = try #require(
      stride(from: 0, to: bundle.count, by: 512).first { bundle[$0...].starts(with: name) }, "\(change.file)")
    guard !change.text.isEmpty else { return header + 512 + change.byte }
    let text = try #require(bundle[(header + 512)...].firstRange(of: Array(change.text.utf8)), "\(change.text)")
    return text.lowerBound + change.byte
  }

  private func judge(
    _ bundle: String, _ witness: [String]
  ) async throws -> (
    ours: (end: RunningProgram.End, output: String, errors: String), python: Python.Outcome
  ) {
    let place = "\(files.path)/\(bundle)"
    let words = ["--vkey", log.signer.key.text] + witness
    return (
      try await siwa(["verify", "--log", place] + words),
      try await Python.run("docs/verify.py", ["log", place] + words)
    )
  }

  private func siwa(_ words: [String]) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.run("siwa", ["audit"] + words, ["SIWA_CONFIG": "/dev/null"]) { program in
      try await program.outcome()
    }
  }

  // MARK: Receipts

  /// In each line of one: its form, the entry, its place, its way up, the checkpoint, and both signatures.
  @Test func aChangedByteOfAReceiptIsRefusedByBoth() async throws {
    var history = SampleHistory()
    for number in 0..<5 { history.comes("event-\(number)", at: Double(number)) }
    let entries = history.entries
    try await log.write([5]) { entries[$0].bytes }
    let words = ["--vkey", log.signer.key.text, "--witness", log.witness.key.text]
    let written = try await siwa(["receipt", "event-2", "-o", files.path, "--log", log.path] + words)
    let path = String(written.output.dropLast())
    let good = try LogDirectory("/").contents(of: path, limit: 1 << 16) ?? []
    func judge() async throws -> (ours: (end: RunningProgram.End, errors: String), python: Python.Outcome) {
      let ours = try await siwa(["check", path] + words)
      return ((ours.end, ours.errors), try await Python.run("docs/verify.py", ["receipt", path] + words))
    }
    let whole = try await judge()
    #expect(whole.ours.end == .exit(0) && whole.python.end == .exit(0), "\(whole)")
    let ends = good.indices.filter { good[$0] == UInt8(ascii: "\n") && $0 > 0 && good[$0 - 1] != UInt8(ascii: "\n") }
    #expect(ends.count == 11)
    for end in ends {
      let place = try #require(good[..<end].lastIndex { UInt8(ascii: "0")...UInt8(ascii: "z") ~= $0 && $0 != 0x3d })
      var bytes = good
      bytes[place] = Self.changed(bytes[place])
      _ = files.write(String(path.dropFirst(files.path.count + 1)), bytes)
      let (ours, python) = try await judge()
      let line = String(decoding: good[..<end].split(separator: UInt8(ascii: "\n")).last ?? [], as: UTF8.self)
      #expect(ours.end == .exit(1) && ours.errors.hasPrefix("siwa: NO: "), "\(line): \(ours)")
      #expect(python.end == .exit(1) && python.errors.hasPrefix("NO: "), "\(line): \(python)")
    }
  }

  // MARK: Bytes

  /// Another byte: of a digit another digit, of what may be Base64 another letter of it.
  private static func changed(_ byte: UInt8) -> UInt8 {
    switch Character(UnicodeScalar(byte)) {
    case "A": UInt8(ascii: "B")
    case "B"..."Z", "a"..."z", "+", "/": UInt8(ascii: "A")
    default: byte ^ 1
    }
  }
}
