import COpenSSL
import Cryptography
import Testing

@Suite struct DigestTests {
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
  ])
  func hashesTheExamplesOfTheStandard(message: String, expected: String) {
    #expect(SHA256.digest(of: Array(message.utf8)).description == expected)
  }

  @Test func aPrefixIsTheFirstByteOfTheMessage() throws {
    for size in [0, 1, 54, 55, 62, 63, 64, 65, 127, 128, 1000] {
      let message = try SecureRandom.bytes(size)
      var digest = [UInt8](repeating: 0, count: 32)
      unsafe message.withUnsafeBytes { bytes in
        unsafe digest.withUnsafeMutableBytes { unsafe SHA256.digest(of: 7, bytes, into: $0) }
      }
      #expect(digest == SHA256.digest(of: [7] + message).bytes, "\(size) bytes")
    }
  }

  /// RFC 4231, all test cases but the fifth, which is of a shortened hash.
  @Test(arguments: [
    (
      [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8),
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    ),
    (
      Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    ),
    (
      [UInt8](repeating: 0xaa, count: 20), [UInt8](repeating: 0xdd, count: 50),
      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
    ),
    (
      [UInt8](1...25), [UInt8](repeating: 0xcd, count: 50),
      "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"
    ),
    (
      [UInt8](repeating: 0xaa, count: 131), Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    ),
    (
      [UInt8](repeating: 0xaa, count: 131),
      Array(
        ("This is a test using a larger than block-size key and a larger than block-size data. "
          + "The key needs to be hashed before being used by the HMAC algorithm.").utf8),
      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
    ),
  ])
  func keyedHashesAgreeWithTheExamplesOfTheStandard(key: [UInt8], message: [UInt8], expected: String) {
    #expect(HMAC(key: key).code(for: message).description == expected)
  }

  @Test func keyedHashOfNothingIsTheKeyedHashOfNothing() {
    let expected = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"  // key of one zero byte
    #expect(HMAC(key: [0]).code(for: []).description == expected)
  }

  /// Around the sizes at which SHA-256 begins another block.
  @Test func keyedHashesAreThoseOfOpenSSLForKeysAndMessagesOfAllSizes() throws {
    for keySize in [1, 31, 32, 33, 63, 64, 65, 128, 200] {
      let key = try SecureRandom.bytes(keySize)
      let hmac = HMAC(key: key)
      for size in [0, 1, 54, 55, 56, 63, 64, 65, 119, 120, 121, 128, 1000] {
        let message = try SecureRandom.bytes(size)
        #expect(hmac.code(for: message).bytes == oneShot(key, message), "\(keySize) and \(size) bytes")
      }
    }
  }

  @Test func threadsThatShareAKeyGetTheirOwnHashes() async throws {
    let key = try SecureRandom.bytes(32)
    let hmac = HMAC(key: key)
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<8 as Range<UInt8> {
        group.addTask {
          (0..<500).allSatisfy { round in
            let message = [UInt8](repeating: number, count: round)
            return hmac.code(for: message).bytes == oneShot(key, message)
          }
        }
      }
      for await areRight in group { #expect(areRight) }
    }
  }

  @Test func randomBytesAreAsManyAsAskedForAndNeverTheSame() throws {
    #expect(try SecureRandom.bytes(0).isEmpty)
    let (first, second) = (try SecureRandom.bytes(32), try SecureRandom.bytes(32))
    #expect(first.count == 32 && second.count == 32 && first != second)
  }
}

/// What OpenSSL's own function says.
private func oneShot(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
  var code = [UInt8](repeating: 0, count: 32)
  let message = message + [0]  // so that it has an address
  _ = unsafe COpenSSL.HMAC(EVP_sha256(), key, CInt(key.count), message, message.count - 1, &code, nil)
  return code
}
