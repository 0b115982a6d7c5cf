import Cryptography

/// A proof that something stands in a log, in one file that is verified offline (tlog-proof); its extension is
/// `.tlog-proof`.
package struct LogProof: Sendable, Hashable {
  /// The most bytes that a proof can have: a note's, and as many again for what is beside it.
  package static let maximumByteCount = 2 * SignedNote.maximumByteCount

  /// Bytes of the application's own, which nothing proves.
  package let extra: [UInt8]?
  /// The place of the entry in the log, counted from zero.
  package let index: UInt64
  /// The proof that the tree of the checkpoint has the entry there.
  package let inclusion: InclusionProof
  /// The checkpoint as the log and the witnesses have signed it.
  package let note: SignedNote

  /// A proof of these parts, which proves nothing before it is verified.
  package init(extra: [UInt8]?, index: UInt64, inclusion: InclusionProof, note: SignedNote) {
    (self.extra, self.index, self.inclusion, self.note) = (extra, index, inclusion, note)
  }

  /// Reads the file, strictly: what is read is written with the same bytes again.
  package init(_ bytes: [UInt8]) throws(LogError) {
    guard bytes.count <= Self.maximumByteCount else {
      throw LogError(.tooLarge, "", "a proof of more than \(Self.maximumByteCount) bytes")
    }
    var lines = LineReader(bytes)
    guard lines.next()?.elementsEqual(Self.header.utf8) == true else {
      throw .malformed("a proof begins with \(Self.header)")
    }
    let beforeExtra = lines
    let prefix = Array("extra ".utf8)
    if let line = lines.next(), line.starts(with: prefix) {
      extra = Base64.decode(String(decoding: line.dropFirst(prefix.count), as: UTF8.self))
      guard extra != nil else { throw .malformed("a proof whose extra data are not in Base64") }
    } else {
      extra = nil
      lines = beforeExtra
    }
    guard let index = lines.number(after: "index") else { throw .malformed("a proof without an index") }
    self.index = index
    // The size of a tree is a UInt64.
    inclusion = InclusionProof(try lines.hashes(atMost: 64))
    note = try SignedNote(Array(lines.rest))
    _ = try Checkpoint(note.text)
  }

  /// The bytes of the file.
  package var bytes: [UInt8] {
    let extra = extra.map { "extra \(Base64.encode($0))\n" } ?? ""
    let hashes = inclusion.hashes.map { "\($0)\n" }.joined()
    return Array("\(Self.header)\n\(extra)index \(index)\n\(hashes)\n".utf8) + note.bytes
  }

  /// What tells that a checkpoint by a key that was replaced since is not by a thief of that key.
  package enum Evidence: Sendable {
    /// The cosignatures that the policy asks for, one at least.
    case cosignatures
    /// A proof that the tree at which the key was replaced continues that of the checkpoint.
    case consistency(ConsistencyProof)
    /// Nothing: the caller knows of other means that the file was there before the key was replaced.
    case none
  }

  /// The checkpoint, by which the log that is trusted has the entry of the hash `leaf` at `index`. Throws what
  /// `LogTrust.verify` throws, and `.unproven` where the entry does not stand there, or a replaced key has signed and there
  /// is not that evidence.
  package func verify(
    _ leaf: MerkleHash, trusting trust: LogTrust, ofReplacedKeys evidence: Evidence = .cosignatures
  ) throws(LogError) -> VerifiedCheckpoint {
    let verified = try trust.verify(note)
    if let head = trust.replacement(after: verified.checkpoint.size)?.head {
      let isKnown =
        switch evidence {
        case .cosignatures: trust.policy.threshold > 0
        case .consistency(let proof): proof.proves(head, continues: verified.checkpoint.head)
        case .none: true
        }
      guard isKnown else {
        throw LogError(
          .unproven, "",
          "the key that signed was replaced at \(head.size) entries, and nobody else vouches for the tree")
      }
    }
    guard inclusion.proves(leaf, at: index, in: verified.checkpoint.head) else {
      throw LogError(.unproven, "", "the proof does not lead from the entry to the checkpoint's root")
    }
    return verified
  }

  private static let header = "c2sp.org/tlog-proof@v1"
}
