import Cryptography
import TestSupport
import Testing

@testable import TransparencyLog

@Suite struct ProofTextTests {
  private static let origin = "example.com/log"
  private static let signatureLine =
    "— example.com/log Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
  private static let note = "example.com/log\n14\n/CcKVZM9n65aH7jLaIZuUB4/MSlEFQ4+ldwUC21rDHM=\n\n" + signatureLine
  private static let hash = "gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=\n"

  private func proof(
    extra: [UInt8]?, of index: UInt64, _ entries: [[UInt8]]
  ) async throws -> (proof: LogProof, trust: LogTrust) {
    let signer = try NoteSigner.generate(name: Self.origin).signer
    let head = NaiveTree(entries: entries).head(entries.count)
    let note = try await SignedNote.sign(Checkpoint(origin: Self.origin, head: head).text, with: signer)
    let inclusion = try await LogView(MemoryLog(entries), at: head).inclusionProof(of: index).proof
    return (
      LogProof(extra: extra, index: index, inclusion: inclusion, note: note),
      try LogTrust(origin: Self.origin, key: signer.key, policy: .none)
    )
  }

  @Test(arguments: [nil, [], [1, 2, 3]] as [[UInt8]?])
  func aProofIsReadAsItWasWrittenAndVerifies(extra: [UInt8]?) async throws {
    let entries = sampleEntries(10)
    let (proof, trust) = try await proof(extra: extra, of: 5, entries)
    let again = try LogProof(proof.bytes)
    #expect(again == proof && again.bytes == proof.bytes && again.extra == extra)
    #expect(try again.verify(.leaf(entries[5]), trusting: trust).checkpoint.size == 10)
    expect(.unproven) { _ = try again.verify(.leaf(entries[6]), trusting: trust) }
    let stranger = try NoteSigner.generate(name: Self.origin).signer.key
    let distrust = try LogTrust(origin: Self.origin, key: stranger, policy: .none)
    expect(.unsigned) { _ = try again.verify(.leaf(entries[5]), trusting: distrust) }
    let elsewhere = LogProof(extra: nil, index: 4, inclusion: proof.inclusion, note: proof.note)
    expect(.unproven) { _ = try elsewhere.verify(.leaf(entries[5]), trusting: trust) }
  }

  @Test func theFormIsThatOfTheSpecification() throws {
    let text = "c2sp.org/tlog-proof@v1\nextra AQID\nindex 7\n\(Self.hash)\(Self.hash)\n\(Self.note)"
    let proof = try LogProof(Array(text.utf8))
    #expect(proof.extra == [1, 2, 3] && proof.index == 7 && proof.inclusion.hashes.count == 2)
    #expect(proof.bytes == Array(text.utf8) && proof.note.signatures.count == 1)
  }

  private static let start = "c2sp.org/tlog-proof@v1\n"

  @Test(arguments: [
    "", "c2sp.org/tlog-proof@v1", "c2sp.org/tlog-proof@v2\nindex 7\n\n\(note)", start, start + "index 7\n",
    start + "index 7\n\n", start + note, start + "index 7\n\(note)", start + "index\n\n\(note)",
    start + "index \n\n\(note)",
    start + "index 07\n\n\(note)", start + "index -7\n\n\(note)", start + "index 18446744073709551616\n\n\(note)",
    start + "index  7\n\n\(note)", start + "Index 7\n\n\(note)", start + "index 7\nextra AQID\n\n\(note)",
    start + "extra AQID\nextra AQID\nindex 7\n\n\(note)", start + "extra AQ\nindex 7\n\n\(note)",
    start + "extra\nindex 7\n\n\(note)", start + "index 7\n\n\n\(note)", start + "index 7\nAAAA\n\n\(note)",
    start + "index 7\n\(hash.dropLast())\r\n\n\(note)", start + "index 7\r\n\n\(note)",
    "\n" + start + "index 7\n\n\(note)",
    start + "index 7\n\(String(repeating: hash, count: 65))\n\(note)", start + "index 7\n\n\(note)\n",
    start + "index 7\n\n\(note.dropLast())",
  ])
  func noOtherTextIsAProof(text: String) {
    #expect(throws: LogError.self) { try LogProof(Array(text.utf8)) }
  }

  @Test func requestsForCosignaturesAreReadAsTheyWereWritten() throws {
    for text in ["old 0\n\n\(Self.note)", "old 13\n\(Self.hash)\(Self.hash)\n\(Self.note)"] {
      let request = try WitnessRequest(Array(text.utf8))
      #expect(request.body == Array(text.utf8) && request.oldSize == (request.consistency.hashes.isEmpty ? 0 : 13))
    }
  }

  @Test(arguments: [
    "", "\n", "old 0\n", "old 0\n\n", note, "old 00\n\n\(note)", "old -1\n\n\(note)", "old  1\n\n\(note)",
    "old\n\n\(note)",
    "Old 1\n\n\(note)", "old 18446744073709551616\n\n\(note)", "old 1\n\(note)", "old 1\nAAAA\n\n\(note)",
    "old 1\n\(String(repeating: hash, count: 64))\n\(note)", "old 1\n\n\n\(note)", "old 1\r\n\n\(note)",
    "old 1\n\n\(note.dropLast())",
  ])
  func noOtherTextIsARequest(text: String) {
    #expect(throws: LogError.self) { try WitnessRequest(Array(text.utf8)) }
  }

  @Test func theCosignaturesOfKnownWitnessesAreTaken() throws {
    let note = try SignedNote(Array(Self.note.utf8))
    let witnesses = try (1...3 as ClosedRange<UInt8>).map {
      try Cosigner(name: "witness.example/\($0)", seed: [UInt8](repeating: $0, count: 32))
    }
    let keys = witnesses.prefix(2).map(\.key)
    func answer(_ signatures: NoteSignature...) -> [UInt8] { Array(signatures.map(\.line).joined().utf8) }
    let lines = try witnesses.map { try $0.cosign(note.text, at: 5) }
    let cosigned = try WitnessAnswer.cosigned(note, answer(lines[2], lines[0], lines[1]), by: keys)
    #expect(cosigned.text == note.text && cosigned.signatures == note.signatures + [lines[0], lines[1]])
    // A later one by the same witness takes the place of the older.
    let later = try witnesses[0].cosign(note.text, at: 6)
    let again = try WitnessAnswer.cosigned(cosigned, answer(later), by: keys)
    #expect(again.signatures == note.signatures + [lines[1], later])

    let timeless = try witnesses[0].cosign(note.text, at: 0)
    let other = try witnesses[0].cosign(Array("other\n".utf8), at: 5)
    let cases: [(LogError.Code, [UInt8])] = [
      (.unsigned, answer(lines[2])), (.badSignature, answer(timeless)), (.badSignature, answer(other)),
      (.badSignature, answer(lines[0], other)), (.malformed, []), (.malformed, [0x0a]),
      (.malformed, Array(answer(lines[0]).dropLast())), (.malformed, answer(lines[0]) + [0x0a]),
      (.malformed, [0x0a] + answer(lines[0])), (.malformed, Array("<html>\n".utf8)),
      (.malformed, Array(repeating: answer(lines[0]), count: 101).flatMap { $0 }),
      (.tooLarge, [UInt8](repeating: 0x0a, count: WitnessAnswer.maximumByteCount + 1)),
    ]
    for (code, body) in cases { expect(code) { _ = try WitnessAnswer.cosigned(note, body, by: keys) } }
  }

  @Test(arguments: [("0\n", 0), ("20852163\n", 20_852_163), ("18446744073709551615\n", UInt64.max)])
  func theSizeThatAWitnessHasIsRead(body: String, size: UInt64) throws {
    #expect(try WitnessAnswer.size(Array(body.utf8)) == size)
  }

  @Test(arguments: ["", "\n", "7", "07\n", "-7\n", "7\n\n", " 7\n", "7\r\n", "18446744073709551616\n", "seven\n"])
  func noOtherBodyIsASize(body: String) {
    #expect(throws: LogError.self) { try WitnessAnswer.size(Array(body.utf8)) }
  }
}
