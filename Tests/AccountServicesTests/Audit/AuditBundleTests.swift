import AccountEvents
import AccountServices
import Foundation
import Glibc
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// A bundle has no byte that does not count.
@Suite(.timeLimit(.minutes(30))) struct AuditBundleTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog

  init() throws { log = try SampleLog(in: files.path + "/log") }

  private var path: String { files.path + "/audit.tar" }

  /// Writes the bundle of a log whose key was rotated, with all that can be beside a log.
  private func write() async throws {
    try await log.write([2], sampleEntry)
    let (next, _) = try NoteSigner.generate(name: SampleLog.origin)
    let writer = try log.writer()
    let rotation = try await KeyRotation.sign(writer.flushed, from: log.signer, to: next)
    let keys = try KeyHistory().appending(rotation)
    try writer.publish(keys)
    while writer.size < 5 { _ = try writer.append(sampleEntry(Int(writer.size))) }
    try writer.publish(try await SignedNote.sign(try writer.flush().text, with: next))
    let attachments = AuditBundle.Attachments(
      keys: try log.bytes(of: LogPath.keys), witnesses: [log.witness.key], appleKeys: [try AuditForge.signingKey()])
    var archive = try LogArchiveWriter(creating: path)
    try await AuditBundle.write(
      AuditLog.open(LogDirectory(log.path), trusting: log.trust), attachments, to: &archive, progress: { _, _ in })
    try archive.finish()
    try archive.publish()
  }

  /// As `siwa audit verify` does.
  private func verify() async throws {
    let bundle = try LogArchive(path)
    try await AuditBundle.verifyManifest(of: bundle)
    _ = try await LogView.verify(
      bundle, trusting: log.trust, since: [], progress: { _, _ in }, entry: { _, _ in }
    ).get()
  }

  @Test func whereAnyByteIsAnotherOneTheBundleIsRefused() async throws {
    var random = SeededRandom()
    try await write()
    try await verify()
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    let file = unsafe open(path, O_WRONLY | O_CLOEXEC)
    try #require(file >= 0)
    defer { close(file) }
    func put(_ byte: UInt8, at place: Int) throws {
      try #require(unsafe withUnsafeBytes(of: byte) { unsafe pwrite(file, $0.baseAddress, 1, place) } == 1)
    }
    for place in bytes.indices {
      try put(bytes[place] ^ 1 << UInt8.random(in: 0..<8, using: &random), at: place)
      await #expect(throws: (any Error).self, "byte \(place), seed \(random.seed)") { try await verify() }
      try put(bytes[place], at: place)
    }
    try await verify()
  }

  /// What the manifest says of the log is not signed: the checkpoint decides.
  @Test(arguments: [
    (#""size":5"#, #""size":4"#), (#""root":""#, #""root":"A"#), ("siwa-audit-bundle/v1", "siwa-audit-bundle/v2"),
  ])
  func aManifestOfAnotherTreeIsRefused(_ words: String, _ others: String) async throws {
    try await write()
    let bundle = try LogArchive(path)
    let manifest = String(decoding: try #require(try await bundle.read("manifest.json", limit: 1 << 16)), as: UTF8.self)
    #expect(manifest.contains(words))
    let changed = Changed(source: bundle, manifest: Array(manifest.replacing(words, with: others).utf8))
    let finding = await #expect(throws: LogFinding.self) { try await AuditBundle.verifyManifest(of: changed) }
    #expect(finding?.kind == .malformed && finding?.path == "manifest.json")
  }

  /// A bundle with another manifest.
  private struct Changed: LogSource {
    let source: LogArchive
    let manifest: [UInt8]

    func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]? {
      path == "manifest.json" ? manifest : try await source.read(path, limit: limit)
    }
  }
}
