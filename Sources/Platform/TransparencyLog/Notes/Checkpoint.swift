/// What a log says of its tree, as the text of a note (tlog-checkpoint). It is to be believed of a `VerifiedCheckpoint`
/// alone.
package struct Checkpoint: Sendable, Hashable {
  /// The name of the log.
  package let origin: String
  /// The tree.
  package let head: TreeHead
  /// Lines behind those of the tree, which no proof covers; this module writes none.
  package let extensions: [String]

  /// The number of entries.
  package var size: UInt64 { head.size }
  /// The root of the tree.
  package var root: MerkleHash { head.root }

  /// A checkpoint of a log whose name has no blanks, plus signs or control characters.
  package init(origin: String, head: TreeHead) {
    precondition(KeyName.isValid(origin))
    (self.origin, self.head, extensions) = (origin, head, [])
  }

  /// Reads the text of a note.
  package init(_ text: [UInt8]) throws(LogError) {
    guard text.last == UInt8(ascii: "\n"), let valid = String(validating: text.dropLast(), as: UTF8.self) else {
      throw .malformed("a checkpoint is lines of UTF-8")
    }
    let lines = valid.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.count >= 3, !lines.contains(""), let size = UInt64(decimal: lines[1].utf8),
      let root = MerkleHash(base64: lines[2].utf8)
    else { throw .malformed("a checkpoint is an origin, a size, a root in Base64 and lines that are not empty") }
    (origin, head, extensions) = (
      String(lines[0]), TreeHead(size: size, root: root), lines.dropFirst(3).map(String.init)
    )
  }

  /// The text for a note.
  package var text: [UInt8] {
    Array("\(origin)\n\(size)\n\(root)\n\(extensions.map { "\($0)\n" }.joined())".utf8)
  }
}
