/// The bodies of a witness's answers to `add-checkpoint` (tlog-witness).
package enum WitnessAnswer {
  /// The most bytes of an answer that are read.
  package static let maximumByteCount = 200_000
  /// The content type of the answer 409.
  package static let sizeContentType = "text/x.tlog.size"

  /// The note with the cosignatures that an answer 200 has of one of these witnesses, in place of older ones by the same
  /// keys. Signatures by other keys are ignored.
  ///
  /// Throws `.malformed` for a body that is not lines of signatures, `.unsigned` where none is by a known witness, and
  /// `.badSignature` where one by a known witness does not verify or has no time.
  package static func cosigned(
    _ note: SignedNote, _ body: [UInt8], by witnesses: [VerifierKey]
  ) throws(LogError) -> SignedNote {
    guard body.count <= maximumByteCount else {
      throw LogError(.tooLarge, "", "a witness's answer of more than \(maximumByteCount) bytes")
    }
    let lines = body.dropLast().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard body.last == UInt8(ascii: "\n"), lines.count <= SignedNote.maximumSignatureCount else {
      throw .malformed("a witness's answer is lines of signatures")
    }
    let answer = try SignedNote(text: note.text, lines.map { line throws(LogError) in try NoteSignature(line) })
    let verified = try answer.verified(by: witnesses)
    guard verified.allSatisfy({ VerifierKey.time(of: $0.signature.bytes) ?? 0 > 0 }) else {
      throw LogError(.badSignature, "", "a witness's signature that is no cosignature, or one of no time")
    }
    let kept = note.signatures.filter { old in !verified.contains { $0.key.isNamed(by: old) } }
    return try SignedNote(text: note.text, kept + verified.map(\.signature))
  }

  /// The size of the tree that the witness has cosigned last, which is the body of an answer 409.
  package static func size(_ body: [UInt8]) throws(LogError) -> UInt64 {
    guard body.last == UInt8(ascii: "\n"), let size = UInt64(decimal: body.dropLast()) else {
      throw .malformed("the answer 409 of a witness is a size and a newline")
    }
    return size
  }
}
