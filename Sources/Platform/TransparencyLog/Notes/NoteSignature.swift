import Cryptography

/// A signature line of a note. Nothing is known of it before a `VerifierKey` has verified it.
package struct NoteSignature: Sendable, Hashable {
  /// The name of the key that it claims to be from.
  package let name: String
  /// The ID of that key.
  package let keyID: UInt32
  /// The signature: 64 bytes of Ed25519, behind eight of a time in a cosignature; of another key, anything.
  package let bytes: [UInt8]

  /// A signature by a key.
  init(by key: VerifierKey, _ bytes: [UInt8]) { (name, keyID, self.bytes) = (key.name, key.id, bytes) }

  /// Reads a line, without its newline.
  init(_ line: some Collection<UInt8>) throws(LogError) {
    guard line.starts(with: Self.dash) else { throw .malformed("a signature line that does not begin with a dash") }
    let parts = line.dropFirst(Self.dash.count).split(
      separator: UInt8(ascii: " "), maxSplits: 1, omittingEmptySubsequences: false
    ).map { String(decoding: $0, as: UTF8.self) }
    guard parts.count == 2, KeyName.isValid(parts[0]) else { throw .malformed("a signature line without a key's name") }
    guard let bytes = Base64.decode(parts[1]), bytes.count > 4 else {
      throw .malformed("a signature line without a signature in Base64")
    }
    name = parts[0]
    keyID = bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    self.bytes = Array(bytes.dropFirst(4))
  }

  /// The line, with its newline.
  package var line: String {
    let id = (0..<4).map { UInt8(truncatingIfNeeded: keyID >> (24 - 8 * $0)) }
    return "— \(name) \(Base64.encode(id + bytes))\n"
  }

  /// An em dash and a blank.
  private static let dash = Array("— ".utf8)
}
