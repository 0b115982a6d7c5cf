import Glibc
import TestSupport
package import TransparencyLog

/// A log in a directory of its own, signed and cosigned: for verifiers to judge.
package final class SampleLog: Sendable {
  /// Its name.
  package static let origin = "example.com/log"
  /// When the witness has seen each checkpoint.
  package static let cosignedAt: UInt64 = 1_800_000_000

  /// The directory.
  package let path: String
  /// Who signs.
  package let signer: NoteSigner
  /// That key's private text.
  package let privateKey: String
  /// Who cosigns.
  package let witness: Cosigner

  /// A log that is begun in a directory.
  package init(in directory: String) throws {
    path = directory
    (signer, privateKey) = try NoteSigner.generate(name: Self.origin)
    witness = try Cosigner(name: "witness.example/1", seed: [UInt8](repeating: 9, count: 32))
  }

  /// Another log with the keys of one: what its signer shows to others.
  package init(in directory: String, signer log: SampleLog) throws {
    (path, signer, privateKey, witness) = (directory, log.signer, log.privateKey, log.witness)
  }

  /// Its writer; the log begins with the first one.
  package func writer() throws(LogError) -> LogWriter {
    _ = try LogWriter.begin(in: path, origin: Self.origin)
    return try LogWriter(opening: path, origin: Self.origin)
  }

  /// Writes entries until the log has so many, with a checkpoint at each of these sizes.
  package func write(_ sizes: [Int], _ entry: (Int) -> [UInt8]) async throws {
    let writer = try writer()
    for size in sizes {
      while writer.size < UInt64(size) { _ = try writer.append(entry(Int(writer.size))) }
      try writer.publish(try await note(on: try writer.flush()))
    }
  }

  /// A checkpoint that is signed and cosigned.
  package func note(on checkpoint: Checkpoint) async throws -> SignedNote {
    let note = try await SignedNote.sign(checkpoint.text, with: signer)
    return try SignedNote(text: note.text, note.signatures + [witness.cosign(note.text, at: Self.cosignedAt)])
  }

  /// The head of the tree that the log's first entries make.
  package func head(of size: UInt64) async throws -> TreeHead {
    let note = try SignedNote(try bytes(of: LogPath.checkpoint))
    return try await LogView(LogDirectory(path), at: Checkpoint(note.text).head).consistencyProof(from: size).older
  }

  /// Trust in it, without a witness.
  package var trust: LogTrust {
    get throws { try LogTrust(origin: Self.origin, key: signer.key, policy: .none) }
  }

  // MARK: Files

  /// The bytes of a file.
  package func bytes(of name: String) throws -> [UInt8] {
    guard let bytes = try LogDirectory(path).contents(of: name, limit: 1 << 24) else {
      throw LogError(.missing, name, "the file is not there")
    }
    return bytes
  }

  /// Writes a file in the place of one that is there.
  package func replace(_ name: String, with bytes: [UInt8]) {
    let descriptor = unsafe open("\(path)/\(name)", O_WRONLY | O_TRUNC | O_CREAT, 0o644)
    let count = unsafe Glibc.write(descriptor, bytes, bytes.count)
    close(descriptor)
    precondition(count == bytes.count, "cannot write \(name)")
  }

  /// Removes a file.
  package func remove(_ name: String) {
    precondition(unsafe unlink("\(path)/\(name)") == 0, "cannot remove \(name)")
  }

  /// Changes a file.
  package func change(_ name: String, _ body: (inout [UInt8]) throws -> Void) throws {
    var bytes = try bytes(of: name)
    try body(&bytes)
    replace(name, with: bytes)
  }
}

/// Entries of different sizes, an empty one among them.
package func sampleEntry(_ number: Int) -> [UInt8] {
  number == 3 ? [] : Array("entry \(number) \(String(repeating: "x", count: number % 61))".utf8)
}
