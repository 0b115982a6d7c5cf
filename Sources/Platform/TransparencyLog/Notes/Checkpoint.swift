/// A log's statement about its tree, as the text of a note (tlog-checkpoint). Only that of a `VerifiedCheckpoint` can be
/// trusted.
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
    guard text.last == UInt8(ascii: "\n"), String(validating: text, as: UTF8.self) != nil else {
      throw .malformed("a checkpoint is lines of UTF-8")
    }
    let lines = text.dropLast().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard lines.count >= 3, lines.allSatisfy({ !$0.isEmpty }), let size = UInt64(decimal: lines[1]),
      let root = MerkleHash(base64: lines[2])
    else { throw .malformed("a checkpoint is an origin, a size, a root in Base64 and lines that are not empty") }
    let texts = lines.map { String(decoding: $0, as: UTF8.self) }
    (origin, head, extensions) = (texts[0], TreeHead(size: size, root: root), Array(texts.dropFirst(3)))
  }

  /// Whether it is one of the log of that name, byte for byte.
  func isOf(_ origin: String) -> Bool { self.origin.utf8.elementsEqual(origin.utf8) }

  /// The text for a note.
  package var text: [UInt8] {
    Array("\(origin)\n\(size)\n\(root)\n\(extensions.map { "\($0)\n" }.joined())".utf8)
  }
}
