package import AccountEvents
package import TransparencyLog

/// A receipt: the proof that an entry stands in the log (tlog-proof), with the entry itself, so that one file says all.
package struct AuditReceipt: Sendable {
  /// The entry.
  package let entry: AuditEntry
  /// The proof; its extra data are the entry's bytes.
  package let proof: LogProof

  /// Makes a receipt of an entry of the log. Throws `.missing` and `.damaged` as `LogView.inclusionProof` does.
  package init(of entry: AuditEntry, at index: UInt64, in log: AuditLog) async throws(LogError) {
    let (leaf, inclusion) = try await log.view.inclusionProof(of: index)
    guard leaf == .leaf(entry.bytes) else {
      throw LogError(.damaged, "", "entry \(index) of the log is another one than its hash says")
    }
    self.entry = entry
    proof = LogProof(extra: entry.bytes, index: index, inclusion: inclusion, note: log.checkpoint.note)
  }

  /// Reads a receipt, and says by which checkpoint the log has its entry: `evidence` is what vouches for one by a key that
  /// was replaced since. Throws what `LogProof.verify` throws, and `.malformed` for a proof without an entry that this
  /// version can read.
  package static func verify(
    _ file: [UInt8], trusting trust: LogTrust, ofReplacedKeys evidence: LogProof.Evidence = .cosignatures
  ) throws(LogError) -> (receipt: AuditReceipt, checkpoint: VerifiedCheckpoint) {
    let proof = try LogProof(file)
    guard let bytes = proof.extra else {
      throw LogError(.malformed, "", "a proof that does not have its entry with it, as extra data")
    }
    let checkpoint = try proof.verify(.leaf(bytes), trusting: trust, ofReplacedKeys: evidence)
    do throws(AuditEntryError) {
      return (AuditReceipt(entry: try AuditEntry(decoding: bytes), proof: proof), checkpoint)
    } catch {
      throw LogError(.malformed, "", "the log has this entry, and it cannot be read, perhaps by this version: \(error)")
    }
  }

  private init(entry: AuditEntry, proof: LogProof) { (self.entry, self.proof) = (entry, proof) }

  /// What the file is called: the event, what the entry says of it, its place, and the extension `.tlog-proof`.
  package func fileName(of event: EventID) -> String {
    // An id may have characters that a file's name has not, or that a shell takes for its own.
    let name = event.text.unicodeScalars.map { scalar in
      scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "-" || scalar == "_"
        ? String(scalar) : "_"
    }
    return "\(name.joined()).\(entry.kind).\(proof.index).tlog-proof"
  }
}

extension AuditEntry {
  /// What kind of entry it is, as its JSON names it.
  package var kind: String {
    switch self {
    case .obligation: "obligation"
    case .effect: "effect"
    case .decision: "decision"
    case .gap: "gap"
    }
  }
}
