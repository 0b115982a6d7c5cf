import TestSupport
import Testing

@testable import Cryptography

@Suite struct AES256GCMTests {
  /// Test cases 13, 14 and 16 of the paper that NIST SP 800-38D is made of (McGrew and Viega).
  @Test(arguments: [
    (
      key: String(repeating: "00", count: 32), nonce: String(repeating: "00", count: 12), plaintext: "", place: "",
      sealed: "530f8afbc74536b9a963b4f1c4cb738b"
    ),
    (
      key: String(repeating: "00", count: 32), nonce: String(repeating: "00", count: 12),
      plaintext: String(repeating: "00", count: 16), place: "",
      sealed: "cea7403d4d606b6e074ec5d3baf39d18" + "d0d1c8a799996bf0265b98b5d48ab919"
    ),
    (
      key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", nonce: "cafebabefacedbaddecaf888",
      plaintext: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
      place: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
      sealed: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662" + "76fc6ece0f4e1768cddf8853bb2d551b"
    ),
  ])
  func sealsTheExamplesOfTheStandard(
    key: String, nonce: String, plaintext: String, place: String, sealed: String
  ) throws {
    let cipher = try AES256GCM(key: bytes(key))
    let made = try cipher.seal(bytes(plaintext), authenticating: bytes(place), nonce: bytes(nonce))
    #expect(hex(made) == nonce + sealed)
    #expect(try cipher.open(made, authenticating: bytes(place)) == bytes(plaintext))
  }

  @Test(Python.isThere) func agreesWithAnotherImplementation() async throws {
    var (lines, plaintexts, ciphers): ([String], [[UInt8]], [(AES256GCM, [UInt8])]) = ([], [], [])
    for size in [0, 1, 15, 16, 17, 64, 1000, 70_000] {
      let key = try SecureRandom.bytes(32), place = try SecureRandom.bytes(size % 50)
      let cipher = try AES256GCM(key: key)
      let plaintext = try SecureRandom.bytes(size)
      lines.append("\(hex(key)),\(hex(place)),\(hex(try cipher.seal(plaintext, authenticating: place)))\n")
      plaintexts.append(plaintext)
      ciphers.append((cipher, place))
    }
    let outcome = try await Python.run("Tests/CryptographyTests/Python/aes-gcm.py", input: Array(lines.joined().utf8))
    #expect(outcome.end == .exit(0), "\(outcome.errors)")
    let answers = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
    try #require(answers.count == lines.count)
    for (index, answer) in answers.enumerated() {
      let words = answer.split(separator: ",", omittingEmptySubsequences: false)
      #expect(words[0] == hex(plaintexts[index]))
      let (cipher, place) = ciphers[index]
      #expect(try cipher.open(bytes(String(words[1])), authenticating: place) == plaintexts[index])
    }
  }

  @Test func noBitOfWhatIsSealedCanBeChanged() throws {
    let cipher = try AES256GCM(key: SecureRandom.bytes(32))
    let sealed = try cipher.seal(Array("a secret".utf8), authenticating: Array("here".utf8))
    for index in sealed.indices {
      for bit in 0..<8 {
        var changed = sealed
        changed[index] ^= 1 << bit
        expectRefusal { try cipher.open(changed, authenticating: Array("here".utf8)) }
      }
    }
    for count in 0..<sealed.count {
      expectRefusal { try cipher.open(Array(sealed[..<count]), authenticating: Array("here".utf8)) }
    }
    expectRefusal { try cipher.open(sealed + [0], authenticating: Array("here".utf8)) }
    #expect(try cipher.open(sealed, authenticating: Array("here".utf8)) == Array("a secret".utf8))
  }

  @Test func anyNumberOfThreadsSealAndOpenWithOneCipher() async throws {
    let cipher = try AES256GCM(key: SecureRandom.bytes(32))
    try await withThrowingTaskGroup { group in
      for number in 0..<8 as Range<UInt8> {
        group.addTask {
          for size in 0..<500 {
            let text = [UInt8](repeating: number, count: size % 70)
            let place = [UInt8](repeating: number, count: size % 3)
            let sealed = try cipher.seal(text, authenticating: place)
            #expect(try cipher.open(sealed, authenticating: place) == text)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func opensNeitherInAnotherPlaceNorWithAnotherKey() throws {
    let cipher = try AES256GCM(key: SecureRandom.bytes(32)), other = try AES256GCM(key: SecureRandom.bytes(32))
    let sealed = try cipher.seal([1, 2, 3], authenticating: Array("here".utf8))
    for place in ["", "her", "here ", "there"] {
      expectRefusal { try cipher.open(sealed, authenticating: Array(place.utf8)) }
    }
    expectRefusal { try other.open(sealed, authenticating: Array("here".utf8)) }
  }

  @Test func sealsTheSameNeverTwiceAlike() throws {
    let cipher = try AES256GCM(key: SecureRandom.bytes(32))
    var seen: Set<[UInt8]> = []
    for _ in 0..<1000 { seen.insert(try cipher.seal([], authenticating: [])) }
    #expect(seen.count == 1000)
  }

  @Test(arguments: [0, 16, 24, 31, 33, 64])
  func refusesAKeyOfAnotherSize(size: Int) {
    let error = #expect(throws: CryptographyError.self) { try AES256GCM(key: [UInt8](repeating: 7, count: size)) }
    #expect(error?.code == .malformedKey)
  }

  @Test func nothingShowsAKey() throws {
    let key = [UInt8](repeating: 201, count: 32)
    for shown in [try AES256GCM(key: key), HMAC(key: key)] as [Any] {
      var dumped = ""
      dump(shown, to: &dumped)
      // As an array is described, or dumped line by line: an address may have the same digits.
      for text in ["\(shown)", String(reflecting: shown), dumped] {
        #expect(!text.contains("201, 201") && !text.contains("- 201\n"))
      }
    }
  }

  private func expectRefusal(_ body: () throws -> [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
    let error = #expect(throws: CryptographyError.self, sourceLocation: sourceLocation) { try body() }
    #expect(error?.code == .notAuthentic, sourceLocation: sourceLocation)
  }

  private func hex(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  private func bytes(_ text: String) -> [UInt8] {
    let digits = Array(text.utf8).map { $0 < 0x3a ? $0 - 0x30 : $0 - 0x57 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
