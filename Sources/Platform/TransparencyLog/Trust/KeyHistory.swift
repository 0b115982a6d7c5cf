/// All rotations of a log's key, from its first key on: the contents of its file `keys`.
///
/// The file is the notes one behind the other, an empty line between two. A log whose key was never rotated has none.
package struct KeyHistory: Sendable, Equatable {
  /// The most bytes that the file can have.
  package static let maximumByteCount = 100_000

  /// The rotations, the oldest first.
  package private(set) var rotations: [KeyRotation] = []

  /// The history of a log that still has its first key.
  package init() {}

  /// Reads a log's history and verifies it, from the first key on.
  package init(_ bytes: [UInt8], of origin: String, from key: VerifierKey) throws(LogError) {
    guard bytes.count <= Self.maximumByteCount else {
      throw LogError(.tooLarge, "", "a history of keys of more than \(Self.maximumByteCount) bytes")
    }
    // Neither the text of a rotation nor its signatures have an empty line.
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let blocks = lines.split(omittingEmptySubsequences: false, whereSeparator: \.isEmpty).map { block in
      block.flatMap { $0 + [UInt8(ascii: "\n")] }
    }
    // The newline at the end of the last signature has an empty line behind it, as it were.
    guard blocks.count.isMultiple(of: 2) == false, blocks.last?.isEmpty == true else {
      throw .malformed("a history of keys is notes with empty lines between them")
    }
    for text in stride(from: 0, to: blocks.count - 1, by: 2) {
      let note = try SignedNote(blocks[text] + [UInt8(ascii: "\n")] + blocks[text + 1])
      try append(KeyRotation(note, of: origin, from: rotations.last?.key ?? key))
    }
  }

  /// The key that a log's history says that it signs with now; nil before the first rotation. Nothing of it is verified:
  /// for a writer, whose own file it is.
  package static func newestKey(in bytes: [UInt8]) throws(LogError) -> VerifierKey? {
    let notes = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).split(
      whereSeparator: \.isEmpty)
    // Each rotation is two blocks of lines, the text and the signatures.
    guard let text = notes.dropLast().last else { return nil }
    do throws(LogError) { return try KeyRotation.key(in: Array(text)) } catch { throw error.at(LogPath.keys) }
  }

  /// The history with one rotation more, from the key that the last one led to. Throws `.conflict` for one of a tree that
  /// is smaller than that of the rotation before it.
  package func appending(_ rotation: KeyRotation) throws(LogError) -> KeyHistory {
    var history = self
    try history.append(rotation)
    return history
  }

  /// Whether it begins with all rotations of an older one: at the same trees, to the same keys.
  func continues(_ older: KeyHistory) -> Bool {
    rotations.count >= older.rotations.count
      && zip(rotations, older.rotations).allSatisfy { $0.head == $1.head && $0.key == $1.key }
  }

  private mutating func append(_ rotation: KeyRotation) throws(LogError) {
    if let last = rotations.last {
      guard rotation.head.size > last.head.size || rotation.head == last.head else {
        throw LogError(.conflict, "", "a rotation of a key at a tree before that of the rotation before it")
      }
    }
    rotations.append(rotation)
  }

  /// The contents of the file.
  package var bytes: [UInt8] { Array(rotations.map(\.note.bytes).joined(separator: [UInt8(ascii: "\n")])) }
}
