@testable import TransparencyLog

extension Subject {
  /// Whatever is read of a log is written with the same bytes again, so that no two readers take it for different things;
  /// and nothing that nobody has signed or proven is believed.
  static func checkTransparency(_ bytes: [UInt8]) throws {
    let text = String(decoding: bytes, as: UTF8.self)
    try promise("a note has one form", isSame(bytes) { () throws(LogError) in try SignedNote(bytes).bytes })
    try promise("a checkpoint has one form", isSame(bytes) { () throws(LogError) in try Checkpoint(bytes).text })
    try promise("a proof has one form", isSame(bytes) { () throws(LogError) in try LogProof(bytes).bytes })
    try promise("a request has one form", isSame(bytes) { () throws(LogError) in try WitnessRequest(bytes).body })
    try promise(
      "a verifier key has one form",
      isSame(Array(text.utf8)) { () throws(LogError) in Array(try VerifierKey(text).text.utf8) })
    try promise("a path has one form", TilePath(text).map { $0.text == text } ?? true)
    try checkBundle(bytes)
    try checkTrust(bytes)
  }

  /// Whether what is read is written as it was, or is not read at all.
  private static func isSame(_ bytes: [UInt8], _ body: () throws(LogError) -> [UInt8]) -> Bool {
    do throws(LogError) {
      return try body() == bytes
    } catch { return true }
  }

  private static func checkBundle(_ bytes: [UInt8]) throws(BrokenPromise) {
    let bundle = EntryBundle(bytes)
    var written: [UInt8] = []
    for range in bundle.entries { EntryBundle.append(Array(bytes[range]), to: &written) }
    try promise("a bundle has at most 256 entries", bundle.entries.count <= 256)
    try promise("what is read of a bundle is its beginning", bytes.starts(with: written))
    try promise("and all of it, where it has its form", bundle.isWellFormed == (written == bytes))
  }

  /// Keys that no input has signed with, but that all inputs know: a corpus names one in its signatures.
  private static func checkTrust(_ bytes: [UInt8]) throws {
    let witness = try VerifierKey(
      name: "witness.example.com/w1", kind: .cosignature, publicKey: [UInt8](repeating: 1, count: 32))
    let key = try VerifierKey(
      name: "example.com/behind-the-sofa", kind: .note, publicKey: [UInt8](repeating: 2, count: 32))
    let trust = try LogTrust(origin: key.name, key: key, policy: WitnessPolicy(0, of: [witness]))
    try promise(
      "what nobody has signed is not believed",
      !isTaken { () throws(LogError) in
        _ = try trust.verify(SignedNote(bytes))
      })
    try promise(
      "nor is a proof of it",
      !isTaken { () throws(LogError) in
        _ = try LogProof(bytes).verify(.empty, trusting: trust)
      })
    try promise("nor another key", !isTaken { () throws(LogError) in _ = try trust.following(bytes) })
    let note = try SignedNote(text: [0x0a], [NoteSignature(by: key, [0])])
    try promise(
      "nor a witness's answer",
      !isTaken { () throws(LogError) in
        _ = try WitnessAnswer.cosigned(note, bytes, by: [witness])
      })
    try promise(
      "a size has one form", isSame(bytes) { () throws(LogError) in Array("\(try WitnessAnswer.size(bytes))\n".utf8) })
  }

  private static func isTaken(_ body: () throws(LogError) -> Void) -> Bool {
    do throws(LogError) {
      try body()
      return true
    } catch { return false }
  }
}
