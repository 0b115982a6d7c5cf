/// A text with signatures below it, as C2SP's signed-note has it. Nothing is known of the text before a signature by a
/// trusted key is verified.
package struct SignedNote: Sendable, Hashable {
  /// The most bytes that a note can have: some two hundred post-quantum signatures, as in Go's implementation.
  package static let maximumByteCount = 1_000_000
  /// The most signatures that a note can have, as in Go's implementation.
  package static let maximumSignatureCount = 100

  /// The text in UTF-8, with the newline at its end.
  package let text: [UInt8]
  /// The signatures in the order of their lines.
  package let signatures: [NoteSignature]

  /// A note of a text and signatures that were made for it.
  package init(text: [UInt8], _ signatures: [NoteSignature]) throws(LogError) {
    try Self.check(text)
    guard text.last == UInt8(ascii: "\n") else { throw .malformed("a note's text that does not end in a newline") }
    guard 1...Self.maximumSignatureCount ~= signatures.count else {
      throw .malformed("a note has from 1 to \(Self.maximumSignatureCount) signatures")
    }
    (self.text, self.signatures) = (text, signatures)
  }

  /// Reads a note, strictly: what is read is written with the same bytes again.
  package init(_ bytes: [UInt8]) throws(LogError) {
    guard bytes.count <= Self.maximumByteCount else {
      throw LogError(.tooLarge, "", "a note of more than \(Self.maximumByteCount) bytes")
    }
    guard bytes.last == UInt8(ascii: "\n"), let end = Self.endOfText(bytes) else {
      throw .malformed("a note is a text, an empty line and lines of signatures")
    }
    let lines = bytes[(end + 1)...].dropLast()
      .split(separator: UInt8(ascii: "\n"), maxSplits: Self.maximumSignatureCount, omittingEmptySubsequences: false)
    guard lines.count <= Self.maximumSignatureCount else {
      throw .malformed("a note of more than \(Self.maximumSignatureCount) signatures")
    }
    try Self.check(bytes)
    try self.init(text: Array(bytes[..<end]), lines.map { line throws(LogError) in try NoteSignature(line) })
  }

  /// The note with a signature of a text, which is verified: a signer may be another program, with another key.
  package static func sign(_ text: [UInt8], with signer: some NoteSigning) async throws -> SignedNote {
    let signature = try await signer.sign(text)
    guard signer.key.verifies(signature, of: text) else {
      throw LogError(.badSignature, "", "the signer's signature is not one by \(signer.key)")
    }
    return try SignedNote(text: text, [NoteSignature(by: signer.key, signature)])
  }

  /// The bytes of the note.
  package var bytes: [UInt8] { text + Array("\n\(signatures.map(\.line).joined())".utf8) }

  /// The signatures by these keys, each of which verifies, in the order of their lines.
  ///
  /// Signatures by other keys are ignored, even if they have the name or the ID of a known one. Throws `.badSignature`
  /// where one under the name and the ID of a known key does not verify, and `.unsigned` where there is none of them.
  package func verified(by keys: [VerifierKey]) throws(LogError) -> [(key: VerifierKey, signature: NoteSignature)] {
    var verified: [(key: VerifierKey, signature: NoteSignature)] = []
    for signature in signatures {
      for key in keys where key.isNamed(by: signature) {
        guard key.verifies(signature.bytes, of: text) else {
          throw LogError(.badSignature, "", "the signature by \(key) does not verify")
        }
        verified.append((key, signature))
      }
    }
    guard !verified.isEmpty else { throw LogError(.unsigned, "", "no signature by a key that is trusted for it") }
    return verified
  }

  /// The place behind the text's last newline, where the empty line is that ends the text.
  private static func endOfText(_ bytes: [UInt8]) -> Int? {
    var place = bytes.count - 1
    while place > 0 {
      if bytes[place] == UInt8(ascii: "\n"), bytes[place - 1] == UInt8(ascii: "\n") { return place }
      place -= 1
    }
    return nil
  }

  private static func check(_ bytes: [UInt8]) throws(LogError) {
    guard bytes.allSatisfy({ $0 >= 0x20 || $0 == UInt8(ascii: "\n") }) else {
      throw .malformed("a note with control characters")
    }
    guard String(validating: bytes, as: UTF8.self) != nil else { throw .malformed("a note that is not UTF-8") }
  }
}
