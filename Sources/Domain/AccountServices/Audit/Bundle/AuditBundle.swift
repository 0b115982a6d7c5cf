package import AccountEvents
import Cryptography
import JSON
package import TransparencyLog

/// The whole log in one file that verifies offline: a POSIX archive of `manifest.json`, `checkpoint`, `keys`, `witnesses`,
/// `apple-signing-keys.json`, and all bundles of entries and tiles of the checkpoint's tree.
package enum AuditBundle {
  private static let format = "siwa-audit-bundle/v1"
  private static let manifest = "manifest.json"
  private static let maximumFileSize = 1 << 24

  /// What is beside the log in a bundle. Nothing of it has a signature of its own.
  package struct Attachments: Sendable {
    /// The log's history of keys, where there is one.
    package let keys: [UInt8]?
    /// The witnesses whose cosignatures were asked for.
    package let witnesses: [VerifierKey]
    /// Every key of Apple's that ever verified something; nil where nobody was asked for them.
    package let appleKeys: [AppleSigningKey]?

    /// What is to be beside the log.
    package init(keys: [UInt8]?, witnesses: [VerifierKey], appleKeys: [AppleSigningKey]?) {
      (self.keys, self.witnesses, self.appleKeys) = (keys, witnesses, appleKeys)
    }

    fileprivate var files: [(name: String, bytes: [UInt8])] {
      var files: [(name: String, bytes: [UInt8])] = []
      if let keys { files.append((LogPath.keys, keys)) }
      if !witnesses.isEmpty { files.append(("witnesses", Array(witnesses.map { "\($0)\n" }.joined().utf8))) }
      if let appleKeys {
        let keys = appleKeys.sorted { ($0.id.text, $0.firstSeen) < ($1.id.text, $1.firstSeen) }.map {
          key -> JSONValue in
          [
            "kty": "RSA", "kid": .string(key.id.text), "use": "sig", "alg": "RS256", "n": .string(key.modulus),
            "e": "AQAB", "first_seen": .integer(key.firstSeen.milliseconds),
          ]
        }
        files.append(("apple-signing-keys.json", JSONValue.object([.init("keys", .array(keys))]).bytes))
      }
      return files
    }
  }

  /// Writes a log at its checkpoint. The same log at the same checkpoint makes the same bytes.
  ///
  /// What it writes is what the log's files say: whether that fits the checkpoint is verified in the bundle.
  package static func write(
    _ log: AuditLog, _ attachments: Attachments, to archive: inout LogArchiveWriter,
    progress: (_ done: UInt64, _ size: UInt64) -> Void
  ) async throws(LogError) {
    let files = [(name: LogPath.checkpoint, bytes: log.checkpoint.note.bytes)] + attachments.files
    let manifest: JSONValue = [
      "bundle": .string(format), "origin": .string(log.trust.origin),
      "size": .integer(Int64(clamping: log.size)), "root": .string("\(log.checkpoint.checkpoint.root)"),
      "files": .object(files.map { .init($0.name, .string("\(SHA256.digest(of: $0.bytes))")) }),
    ]
    try archive.add(Self.manifest, manifest.bytes)
    for file in files { try archive.add(file.name, file.bytes) }
    for path in log.view.files {
      try archive.add(path.text, try await log.view.bytes(of: path))
      if path.kind == .entries { progress(path.index * UInt64(TilePath.fullWidth) + UInt64(path.width), log.size) }
    }
  }

  /// Compares the manifest with the files beside the log, and with what the checkpoint says. Throws a `LogFinding` for the
  /// first thing that does not fit, and does nothing for a log without a manifest, which is no bundle.
  package static func verifyManifest(of source: any LogSource) async throws {
    guard let bytes = try await source.read(Self.manifest, limit: maximumFileSize) else { return }
    let manifest: JSONValue
    do throws(JSONError) {
      manifest = try JSONValue(decoding: bytes, JSONLimits(bytes: maximumFileSize, depth: 8, members: 64))
    } catch {
      throw LogFinding(.malformed, Self.manifest, "no JSON")
    }
    guard manifest["bundle"]?.text == format, case .object(let files)? = manifest["files"] else {
      throw LogFinding(.malformed, Self.manifest, "no \(format)")
    }
    for file in files {
      let bytes = try await source.read(file.name, limit: maximumFileSize) ?? []
      guard "\(SHA256.digest(of: bytes))" == file.value.text else {
        throw LogFinding(.malformed, file.name, "not the file that \(Self.manifest) names")
      }
    }
    // Whether the checkpoint is to be believed is not judged here.
    let note = try await source.read(LogPath.checkpoint, limit: SignedNote.maximumByteCount) ?? []
    let checkpoint: Checkpoint
    do throws(LogError) { checkpoint = try Checkpoint(SignedNote(note).text) } catch {
      throw LogFinding(.malformed, LogPath.checkpoint, error.detail)
    }
    guard manifest["origin"]?.text == checkpoint.origin, manifest["root"]?.text == "\(checkpoint.root)",
      manifest["size"] == .integer(Int64(clamping: checkpoint.size))
    else { throw LogFinding(.malformed, Self.manifest, "it says another tree than the checkpoint") }
  }
}
