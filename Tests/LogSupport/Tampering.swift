import Glibc
import TestSupport
import TransparencyLog

/// What somebody may do to a log who has its files, and perhaps its key: to one of 700 sample entries that had a checkpoint
/// at 300. The raw value is its row in the table of docs/audit.md.
package enum Tampering: String, CaseIterable, Sendable {
  case entryChanged = "a byte of an entry changed"
  case lengthChanged = "a byte of an entry's length changed"
  case lastEntryChanged = "a byte of the last entry changed"
  case leafHashChanged = "a byte of an entry's hash changed"
  case partialLeafHashChanged = "a byte of a hash in the tile at the right edge changed"
  case upperHashChanged = "a byte of a hash in an upper tile changed"
  case entryRemoved = "an entry removed"
  case lastEntryRemoved = "the last entry of a full bundle removed"
  case entriesExchanged = "two entries exchanged"
  case entryRepeated = "an entry repeated"
  case bundleMissing = "a bundle of entries removed"
  case tileMissing = "a tile removed"
  case newestCutOff = "the newest hundred entries cut off"
  case newestDisowned = "the same, with a checkpoint signed for what is left; the newer checkpoint was kept"
  case splitView = "another log of the same size, signed too; the checkpoint of the first was kept"
  case rewritten = "another log that is longer, signed too; a checkpoint of the first was kept"
  case sizeForged = "the size in the checkpoint changed"
  case rootForged = "another root in the checkpoint, signed"
  case signatureForged = "a byte of the checkpoint's signature changed"
  case foreignKey = "a checkpoint of the log's name, signed by another key"
  case checkpointMissing = "the checkpoint removed"
  case replacedWithTile = "a bundle replaced, and its tile"
  case replacedUpToRoot = "a bundle replaced, and all tiles above it"

  /// How what each verifier has to say begins.
  package struct Verdicts: Sendable {
    /// `LogView.verify`, and with it `siwa audit verify`.
    package let ours: String
    /// Go's sumdb, by `judge.go`.
    package let go: String
    /// `docs/verify.py`.
    package let python: String
    /// The file with an older checkpoint that the verifier has kept; nil where it needs none.
    package let since: String?

    init(_ ours: String, go: String, python: String, since: String? = nil) {
      (self.ours, self.go, self.python, self.since) = (ours, go, python, since)
    }

    /// The row of the table of docs/audit.md.
    package func row(of tampering: Tampering) -> String {
      let words = [ours, python, go].map { text in
        "`\(text.last == ":" || text.last == " " ? text.dropLast(text.hasSuffix(": ") ? 2 : 1) : text[...])`"
      }
      return "| \(([tampering.rawValue] + words).joined(separator: " | ")) |"
    }
  }

  /// Writes the log that it is about.
  package static func write(_ log: SampleLog) async throws { try await log.write([300, 700], sampleEntry) }

  /// Does it, and says what is to be found.
  package func apply(to log: SampleLog) async throws -> Verdicts {
    let bundle = "tile/entries/001"
    let entry300 = Verdicts(
      "wrong-entry: \(bundle), entry 300:", go: "\(bundle), entry 300:",
      python: "tile/0/001: hash 44 is not that of entry 300")
    switch self {
    case .entryChanged:
      try log.change(bundle) { bytes in bytes[EntryBundle(bytes).entries[44].lowerBound] ^= 1 }
      return entry300
    case .lengthChanged:
      try log.change(bundle) { bytes in bytes[EntryBundle(bytes).entries[44].lowerBound - 1] ^= 1 }
      return Verdicts(entry300.ours, go: entry300.go, python: "\(bundle): not 256 entries")
    case .lastEntryChanged:
      try log.change("tile/entries/002.p/188") { bytes in bytes[bytes.count - 1] ^= 1 }
      return Verdicts(
        "wrong-entry: tile/entries/002.p/188, entry 699:", go: "tile/entries/002.p/188, entry 699:",
        python: "tile/0/002.p/188: hash 187 is not that of entry 699")
    case .leafHashChanged:
      try log.change("tile/0/001") { bytes in bytes[44 * 32] ^= 1 }
      return Verdicts("wrong-hash: tile/0/001, entry 300:", go: entry300.go, python: entry300.python)
    case .partialLeafHashChanged:
      try log.change("tile/0/002.p/188") { bytes in bytes[0] ^= 1 }
      return Verdicts(
        "wrong-hash: tile/0/002.p/188, entry 512:", go: "tile/entries/002.p/188, entry 512:",
        python: "tile/0/002.p/188: hash 0 is not that of entry 512")
    case .upperHashChanged:
      try log.change("tile/1/000.p/2") { bytes in bytes[32] ^= 1 }
      return Verdicts(
        "wrong-hash: tile/1/000.p/2, entry 256:", go: "tile/1/000.p/2: hash 1",
        python: "tile/1/000.p/2: hash 1 is not that of tile 1 of level 0")
    case .entryRemoved:
      try changeEntries(of: bundle, in: log) { $0.remove(at: 44) }
      return Verdicts(entry300.ours, go: entry300.go, python: "\(bundle): not 256 entries")
    case .lastEntryRemoved:
      try changeEntries(of: bundle, in: log) { $0.removeLast() }
      return Verdicts(
        "wrong-count: \(bundle), entry 511:", go: "\(bundle), entry 511:", python: "\(bundle): not 256 entries")
    case .entriesExchanged:
      try changeEntries(of: bundle, in: log) { $0.swapAt(44, 100) }
      return entry300
    case .entryRepeated:
      try changeEntries(of: bundle, in: log) { $0.insert($0[44], at: 44) }
      return Verdicts(
        "wrong-entry: \(bundle), entry 301:", go: "\(bundle), entry 301:", python: "\(bundle): not 256 entries")
    case .bundleMissing:
      log.remove(bundle)
      return Verdicts(
        "missing: \(bundle), entry 256:", go: "\(bundle): missing", python: "\(bundle): the file is not there")
    case .tileMissing:
      log.remove("tile/0/001")
      return Verdicts(
        "missing: tile/0/001, entry 256:", go: "tile/0/001: missing", python: "tile/0/001: the file is not there")
    case .newestCutOff:
      // The files of 600 entries, with the checkpoint of 700.
      for name in ["tile/0/002.p", "tile/entries/002.p"] {
        log.replace("\(name)/88", with: try log.bytes(of: "\(name)/188"))
        log.remove("\(name)/188")
      }
      return Verdicts(
        "missing: tile/entries/002.p/188, entry 512:", go: "tile/entries/002.p/188: missing",
        python: "tile/entries/002: the file is not there")
    case .newestDisowned:
      let kept = try await show([600], of: log, keeping: 700) { sampleEntry($0) }
      return Verdicts(
        "shrunk: checkpoint:", go: "checkpoint: 600 entries, after one of 700",
        python: "checkpoint: not the tree, or not all of it, of 700 entries", since: kept)
    case .splitView:
      let kept = try await show([700], of: log, keeping: 700) { $0 == 5 ? Array("another".utf8) : sampleEntry($0) }
      return Verdicts(
        "split-view: checkpoint:", go: "checkpoint: it does not continue one of 700",
        python: "checkpoint: not the tree, or not all of it, of 700 entries", since: kept)
    case .rewritten:
      let kept = try await show([800], of: log, keeping: 300) { $0 == 5 ? Array("another".utf8) : sampleEntry($0) }
      return Verdicts(
        "rewritten: checkpoint:", go: "checkpoint: it does not continue one of 300",
        python: "the first 300 entries are not those of an older checkpoint", since: kept)
    case .sizeForged:
      try log.change(LogPath.checkpoint) { bytes in
        bytes = Array(String(decoding: bytes, as: UTF8.self).replacing("\n700\n", with: "\n600\n").utf8)
      }
      return Self.badSignature
    case .rootForged:
      let checkpoint = Checkpoint(origin: SampleLog.origin, head: TreeHead(size: 700, root: .leaf([1])))
      log.replace(LogPath.checkpoint, with: try await log.note(on: checkpoint).bytes)
      return Self.wrongRoot
    case .signatureForged:
      // A byte in the middle of what stands for the log's signature in Base64.
      try log.change(LogPath.checkpoint) { bytes in
        let place = bytes.lastIndex(of: UInt8(ascii: "=")) ?? 0
        let line = bytes[..<place].firstRange(of: Array("\n— \(SampleLog.origin) ".utf8))?.upperBound ?? 0
        bytes[line + 40] = bytes[line + 40] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      }
      return Self.badSignature
    case .foreignKey:
      let stranger = try NoteSigner.generate(name: SampleLog.origin).signer
      let text = Checkpoint(origin: SampleLog.origin, head: .empty).text
      log.replace(LogPath.checkpoint, with: try await SignedNote.sign(text, with: stranger).bytes)
      return Verdicts(
        "unsigned: checkpoint:", go: "checkpoint: note has no verifiable signatures",
        python: "checkpoint: not signed by the key of \(SampleLog.origin)")
    case .checkpointMissing:
      log.remove(LogPath.checkpoint)
      return Verdicts("missing: checkpoint:", go: "checkpoint: checkpoint: missing", python: "checkpoint: ")
    case .replacedWithTile:
      try await replace([bundle, "tile/0/001"], in: log)
      return Verdicts(
        "wrong-hash: tile/1/000.p/2, entry 256:", go: "tile/1/000.p/2: hash 1",
        python: "tile/1/000.p/2: hash 1 is not that of tile 1 of level 0")
    case .replacedUpToRoot:
      try await replace([bundle, "tile/0/001", "tile/1/000.p/2"], in: log)
      return Self.wrongRoot
    }
  }

  private static let badSignature = Verdicts(
    "bad-signature: checkpoint:", go: "checkpoint: invalid signature", python: "checkpoint: the signature by ")
  private static let wrongRoot = Verdicts(
    "wrong-root: checkpoint:", go: "checkpoint: it has another root",
    python: "checkpoint: entries and tiles come to another root")

  /// Puts another log, of these entries and with the same key, in the place of one, and returns the file that has the
  /// first one's checkpoint of a size.
  private func show(
    _ sizes: [Int], of log: SampleLog, keeping size: UInt64, _ entry: (Int) -> [UInt8]
  ) async throws -> String {
    let kept = try await log.note(on: Checkpoint(origin: SampleLog.origin, head: log.head(of: size)))
    precondition(unsafe rename(log.path, "\(log.path).first") == 0, "cannot rename the log")
    try await SampleLog(in: log.path, signer: log).write(sizes, entry)
    try SampleLog(in: "\(log.path).first", signer: log).replace("kept", with: kept.bytes)
    return "\(log.path).first/kept"
  }

  private func changeEntries(of bundle: String, in log: SampleLog, _ body: (inout [[UInt8]]) -> Void) throws {
    try log.change(bundle) { bytes in
      var entries = EntryBundle(bytes).entries.map { Array(bytes[$0]) }
      body(&entries)
      bytes = entries.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 0xff)] + $0 }
    }
  }

  /// Replaces files with those of a log that has another entry 300.
  private func replace(_ names: [String], in log: SampleLog) async throws {
    let files = TemporaryDirectory()
    let forged = try SampleLog(in: files.path + "/log")
    try await forged.write([700]) { $0 == 300 ? Array("another".utf8) : sampleEntry($0) }
    for name in names { log.replace(name, with: try forged.bytes(of: name)) }
  }
}
