/// The step from one of a log's keys to the next, which both have signed.
///
/// The note's text is five lines: `key-rotation/v1`, the origin, size and root of the last tree that the old key signs, and
/// the new key. No checkpoint can be taken for it, nor it for a checkpoint, because the second line of one is a number.
/// For who knows the rotation, the old key's signatures count for nothing beyond that tree, and up to it only for trees
/// that it continues. Who does not know it yet cannot tell a thief of the old key from the log: witnesses can.
package struct KeyRotation: Sendable, Hashable {
  /// The last tree that the old key signs, and the first one that the new key may sign.
  package let head: TreeHead
  /// The new key.
  package let key: VerifierKey
  /// The note, with signatures by the old and by the new key.
  package let note: SignedNote

  /// Rotates a log's key: the old key signs for the new one, and the new one proves its possession.
  ///
  /// The checkpoint has to be the last one that the old key has signed or might have signed: `LogWriter.flushed`.
  package static func sign(
    _ checkpoint: Checkpoint, from old: some NoteSigning, to new: some NoteSigning
  ) async throws -> KeyRotation {
    let text = text(checkpoint.origin, checkpoint.head, new.key)
    let notes = [try await SignedNote.sign(text, with: old), try await SignedNote.sign(text, with: new)]
    return try KeyRotation(
      SignedNote(text: text, notes.flatMap(\.signatures)), of: checkpoint.origin, from: old.key)
  }

  /// Reads and verifies a rotation of that log's, from that key.
  init(_ note: SignedNote, of origin: String, from old: VerifierKey) throws(LogError) {
    let lines = note.text.dropLast().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard lines.count == 5, lines[0].elementsEqual(Self.header), let size = UInt64(decimal: lines[2]),
      let root = MerkleHash(base64: lines[3])
    else { throw .malformed("no rotation of a log's key") }
    guard lines[1].elementsEqual(origin.utf8) else {
      throw LogError(.wrongOrigin, "", "the rotation of a key is not one of \(origin)")
    }
    head = TreeHead(size: size, root: root)
    key = try Self.key(in: lines)
    guard key.kind == .note, key.name == old.name, key != old else {
      throw .malformed("a log's next key has the same name and kind, and is another one")
    }
    for signer in [old, key] { _ = try note.verified(by: [signer]) }
    self.note = note
  }

  /// The new key that the lines of a rotation's text name.
  static func key(in lines: [ArraySlice<UInt8>]) throws(LogError) -> VerifierKey {
    guard lines.count == 5 else { throw .malformed("no rotation of a log's key") }
    return try VerifierKey(String(decoding: lines[4], as: UTF8.self))
  }

  private static func text(_ origin: String, _ head: TreeHead, _ key: VerifierKey) -> [UInt8] {
    header + Array("\n\(origin)\n\(head.size)\n\(head.root)\n\(key)\n".utf8)
  }

  private static let header = Array("key-rotation/v1".utf8)
}
