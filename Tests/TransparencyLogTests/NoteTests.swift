import Cryptography
import TestSupport
import Testing

@testable import TransparencyLog

@Suite struct NoteTests {
  /// The example of signed-note.
  private static let key = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
  private static let note = """
    This is an example message.

    — example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=

    """

  /// The example of Go's package.
  private static let goKey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
  private static let goPrivateKey = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
  private static let goNote = """
    If you think cryptography is the answer to your problem,
    then you don't know what your problem is.

    — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=

    """

  @Test(arguments: [(key, note), (goKey, goNote)])
  func theExamplesVerifyAndAreWrittenAgain(key: String, text: String) throws {
    let (key, note) = (try VerifierKey(key), try SignedNote(Array(text.utf8)))
    #expect(key.text == key.description)
    #expect(try note.verified(by: [key]).map(\.key) == [key])
    #expect(note.bytes == Array(text.utf8))
  }

  @Test func goesPrivateKeySignsAsGoDoes() async throws {
    let signer = try NoteSigner(Self.goPrivateKey)
    #expect(signer.key.text == Self.goKey)
    let note = try SignedNote(Array(Self.goNote.utf8))
    #expect(try await SignedNote.sign(note.text, with: signer) == note)
  }

  @Test func aNewKeyIsReadFromItsTextAndShowsNothing() async throws {
    let (signer, text) = try NoteSigner.generate(name: "example.com/log")
    let again = try NoteSigner(text)
    #expect(again.key == signer.key && again.key.name == "example.com/log")
    let note = try await SignedNote.sign([0x0a], with: again)
    #expect(try note.verified(by: [try VerifierKey(signer.key.text)]).count == 1)
    // The secret is base64, and may hold the sign that separates the parts.
    let secret = try #require(text.split(separator: "+", maxSplits: 4).last)
    #expect(secret.count == 44)
    var dumped = ""
    dump(signer, to: &dumped)
    for shown in ["\(signer)", String(reflecting: signer), dumped] { #expect(!shown.contains(secret)) }
  }

  @Test(arguments: [
    "", "PRIVATE+KEY", "PRIVATE+KEY+", "PRIVATE+KEY+PeterNeumann", goKey,
    goPrivateKey.replacing("c74f20a3", with: "c74f20a4"), goPrivateKey.replacing("c74f20a3", with: "C74F20A3"),
    goPrivateKey.replacing("Peter", with: "Petra"), goPrivateKey.replacing("+AYEK", with: "+BIEK"),
    goPrivateKey + "AAAA",
    String(goPrivateKey.dropLast(4)), goPrivateKey + "\n", "private+key" + goPrivateKey.dropFirst(11),
  ])
  func noOtherTextIsAPrivateKey(text: String) {
    #expect(throws: LogError.self) { try NoteSigner(text) }
  }

  @Test(arguments: [
    "", "+", "++", "example.com/foo", "example.com/foo+530d903a", key.replacing("530d903a", with: "530D903A"),
    key.replacing("530d903a", with: "30d903a"), key.replacing("530d903a", with: "530d903b"), "a" + key, key + "=",
    key.replacing("+A", with: "+B"), String(key.dropLast(4)), key + "AAAA", key.replacing("example", with: "exam ple"),
    key.replacing("example", with: "exam\u{2003}ple"), key.replacing("example", with: "exam\nple"),
    key.replacing("example.com/foo", with: ""), "\u{7f}" + key,
  ])
  func noOtherTextIsAVerifierKey(text: String) {
    #expect(throws: LogError.self) { try VerifierKey(text) }
  }

  private static let line =
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="

  @Test(arguments: [
    "", "\n", "\n\n", "\n\n\n", "text\n", "text\n\n", "text\n\n\n", "text\n\(line)\n", "text\n\n\(line)", "\(line)\n",
    "text\n\n\(line)\n\n", "text\n\n\(line)\n\n\(line)", "text\n\n\(line)\n ", "text\n\n\n\(line)\n\n",
    "text\n\n-\(line.dropFirst(1))\n", "text\n\n—\(line.dropFirst(2))\n", "text\n\n \(line)\n", "text\n\n\(line) \n",
    "text\n\n\(line)\r\n", "text\r\n\n\(line)\n", "te\txt\n\n\(line)\n", "te\u{0}xt\n\n\(line)\n",
    "te\u{1b}xt\n\n\(line)\n",
    "text\n\n\(line.replacing(" Uw2", with: "  Uw2"))\n", "text\n\n\(line.replacing(" Uw2", with: " w2"))\n",
    "text\n\n\(line.replacing("example", with: "exam+ple"))\n", "text\n\n—  Uw2QOkn8\n", "text\n\n— example.com/foo\n",
    "text\n\n— example.com/foo \n", "text\n\n— example.com/foo Uw2QOg==\n", "text\n\n— example.com/foo Uw2QOh==\n",
    "text\n\n\(line.replacing("QM=", with: "QN="))\n", "text\n\n\(line.dropLast())\n",
    "text\n\n\(line)\nmore\n", "text\n\n\(line.replacing("/foo", with: "/\u{a0}foo"))\n",
    "text\n\n\(String(repeating: "\(line)\n", count: 101))",
  ])
  func noOtherTextIsANote(text: String) {
    #expect(throws: LogError.self) { try SignedNote(Array(text.utf8)) }
  }

  @Test func bytesThatAreNoTextAreNoNote() {
    for bytes: [UInt8] in [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80]] {
      let note = Array("text ".utf8) + bytes + Array("\n\n\(Self.line)\n".utf8)
      #expect(throws: LogError.self) { try SignedNote(note) }
    }
    let long = [UInt8](repeating: 0x61, count: SignedNote.maximumByteCount) + Array("\n\n\(Self.line)\n".utf8)
    #expect { try SignedNote(long) } throws: { ($0 as? LogError)?.code == .tooLarge }
  }

  /// A text may have empty lines of its own, a dash, and any character of Unicode.
  @Test(arguments: ["\n", "\n\n", "a\n\nb\n", "\(line)\n\n\(line)\n", "è subito sera \u{7f}\u{85}\n"])
  func textsEndAtTheLastEmptyLine(text: String) throws {
    let note = try SignedNote(Array("\(text)\n\(Self.line)\n".utf8))
    #expect(note.text == Array(text.utf8) && note.signatures.count == 1)
  }

  @Test func aHundredSignaturesAreRead() throws {
    let text = "text\n\n" + String(repeating: "\(Self.line)\n", count: 100)
    #expect(try SignedNote(Array(text.utf8)).signatures.count == 100)
  }

  @Test func signaturesByUnknownKeysAreIgnoredAndTheOthersVerified() async throws {
    let signers = try (0..<3).map { try NoteSigner.generate(name: "example.com/\($0)").signer }
    let text = Array("text\n".utf8)
    let signatures = try await withSignatures(of: signers, text)
    let note = try SignedNote(text: text, signatures)
    #expect(try note.verified(by: [signers[1].key]).map(\.key) == [signers[1].key])
    #expect(try note.verified(by: signers.map(\.key)).count == 3)
    let stranger = try NoteSigner.generate(name: "example.com/0").signer.key
    expect(.unsigned) { _ = try note.verified(by: [stranger]) }
    expect(.unsigned) { _ = try note.verified(by: []) }
    // The name of a known key with another ID, and its ID under another name, are unknown keys.
    let key = signers[0].key
    let bad = [UInt8](repeating: 0, count: 64)
    let sameName = try NoteSignature("— \(key.name) \(Base64.encode([0, 0, 0, 0] + bad))".utf8)
    let id = (0..<4).map { UInt8(truncatingIfNeeded: key.id >> (24 - 8 * $0)) }
    let sameID = try NoteSignature("— other \(Base64.encode(id + bad))".utf8)
    let both = try NoteSignature("— \(key.name) \(Base64.encode(id + bad))".utf8)
    #expect(try SignedNote(text: text, [sameName, sameID] + signatures).verified(by: [key]).count == 1)
    // One bad signature by a known key spoils the note, wherever it stands.
    for list in [[both] + signatures, signatures + [both], [both]] {
      expect(.badSignature) { _ = try SignedNote(text: text, list).verified(by: [key]) }
    }
    expect(.badSignature) { _ = try SignedNote(text: Array("other\n".utf8), signatures).verified(by: [key]) }
  }

  private func withSignatures(of signers: [NoteSigner], _ text: [UInt8]) async throws -> [NoteSignature] {
    var signatures: [NoteSignature] = []
    for signer in signers { signatures += try await SignedNote.sign(text, with: signer).signatures }
    return signatures
  }

  @Test func aSignerWithAnotherKeyIsFoundOut() async throws {
    struct Liar: NoteSigning {
      let key: VerifierKey
      let other: NoteSigner
      func sign(_ text: [UInt8]) async throws -> [UInt8] { try await other.sign(text) }
    }
    let liar = Liar(
      key: try NoteSigner.generate(name: "log").signer.key, other: try NoteSigner.generate(name: "log").signer)
    await #expect(throws: LogError.self) { try await SignedNote.sign([0x0a], with: liar) }
  }
}

@Suite struct CheckpointTests {
  /// The examples of tlog-checkpoint and tlog-cosignature.
  private static let text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
  private static let note =
    text + """

      — example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
      — witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==

      """

  @Test func theExamplesAreRead() throws {
    let note = try SignedNote(Array(Self.note.utf8))
    let checkpoint = try Checkpoint(note.text)
    #expect(checkpoint.origin == "example.com/behind-the-sofa" && checkpoint.size == 20_852_163)
    #expect(checkpoint.root.description == "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=")
    #expect(checkpoint.text == Array(Self.text.utf8) && note.bytes == Array(Self.note.utf8))
    #expect(Checkpoint(origin: checkpoint.origin, head: checkpoint.head) == checkpoint)
    #expect(note.signatures.map(\.name) == ["example.com/behind-the-sofa", "witness.example.com/w1"])
    #expect(VerifierKey.time(of: note.signatures[1].bytes) == 1_679_315_147)
  }

  @Test func extensionLinesAreKept() throws {
    let text = Array((Self.text + "more\nand more\n").utf8)
    let checkpoint = try Checkpoint(text)
    #expect(checkpoint.extensions == ["more", "and more"] && checkpoint.text == text)
  }

  @Test(arguments: [
    "", "\n", "a\n", "a\n1\n", String(text.dropLast()), "\n" + text, text + "\n", text + "more\n\n",
    text.replacing("20852163", with: ""), text.replacing("20852163", with: "020852163"),
    text.replacing("20852163", with: "+20852163"), text.replacing("20852163", with: "-1"),
    text.replacing("20852163", with: "18446744073709551616"), text.replacing("20852163", with: "00"),
    text.replacing("20852163", with: "2085216٣"), text.replacing("20852163", with: " 20852163"),
    text.replacing("q2I=", with: "q2I"), text.replacing("q2I=", with: "q2J="), text.replacing("q2I=", with: "q2I=="),
    text.replacing("CsUY", with: "CsUYCsUY"), text.replacing("CsUY", with: ""), text.replacing("example", with: "\n"),
  ])
  func noOtherTextIsACheckpoint(text: String) {
    #expect(throws: LogError.self) { try Checkpoint(Array(text.utf8)) }
  }

  @Test func theLargestSizeIsRead() throws {
    #expect(try Checkpoint(Array(Self.text.replacing("20852163", with: "18446744073709551615").utf8)).size == .max)
    #expect(try Checkpoint(Array(Self.text.replacing("20852163", with: "0").utf8)).size == 0)
  }
}

/// Expects an error of the module, of that kind.
func expect(
  _ code: LogError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) {
  do {
    try body()
    Issue.record("it did not throw \(code.rawValue)", sourceLocation: sourceLocation)
  } catch {
    #expect((error as? LogError)?.code == code, "\(error)", sourceLocation: sourceLocation)
  }
}

/// The same of an asynchronous body.
func expect(
  _ code: LogError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async {
  do {
    try await body()
    Issue.record("it did not throw \(code.rawValue)", sourceLocation: sourceLocation)
  } catch {
    #expect((error as? LogError)?.code == code, "\(error)", sourceLocation: sourceLocation)
  }
}
