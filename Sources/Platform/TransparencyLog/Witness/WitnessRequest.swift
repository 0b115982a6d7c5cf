/// A request for a cosignature: the body of a POST to a witness's `add-checkpoint` (tlog-witness).
package struct WitnessRequest: Sendable, Equatable {
  /// The most hashes that a request can have.
  package static let maximumHashCount = 63
  /// The most bytes that a body can have.
  package static let maximumByteCount = SignedNote.maximumByteCount + 4096

  /// The size of the tree that the witness has cosigned last; 0 for none.
  package let oldSize: UInt64
  /// The proof that the checkpoint's tree begins with that one.
  package let consistency: ConsistencyProof
  /// The checkpoint.
  package let note: SignedNote

  /// A request with a checkpoint.
  package init(oldSize: UInt64, consistency: ConsistencyProof, note: SignedNote) {
    (self.oldSize, self.consistency, self.note) = (oldSize, consistency, note)
  }

  /// Reads a body, as a witness does.
  package init(_ body: [UInt8]) throws(LogError) {
    guard body.count <= Self.maximumByteCount else {
      throw LogError(.tooLarge, "", "a request of more than \(Self.maximumByteCount) bytes")
    }
    var lines = LineReader(body)
    guard let size = lines.number(after: "old") else { throw .malformed("a request begins with the old size") }
    oldSize = size
    consistency = ConsistencyProof(try lines.hashes(atMost: Self.maximumHashCount))
    note = try SignedNote(Array(lines.rest))
    _ = try Checkpoint(note.text)
  }

  /// The body.
  package var body: [UInt8] {
    Array("old \(oldSize)\n\(consistency.hashes.map { "\($0)\n" }.joined())\n".utf8) + note.bytes
  }
}
