import COpenSSL
import Cryptography
import Testing

@Suite struct Ed25519Tests {
  /// RFC 8032 §7.1: seed, public key, message, signature.
  private static let examples = [
    (
      "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
        + "655141438e7a100b"
    ),
    (
      "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
      "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
        + "b00d291612bb0c00"
    ),
    (
      "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
      "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
      "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28d"
        + "c027beceea1ec40a"
    ),
  ]

  @Test(arguments: examples)
  func signsAndVerifiesTheExamplesOfTheStandard(
    seed: String, publicKey: String, message: String, signature: String
  ) throws {
    let key = try Ed25519PrivateKey(seed: bytes(seed))
    #expect(key.publicKey.bytes == bytes(publicKey))
    #expect(try key.sign(bytes(message)) == bytes(signature))
    #expect(try Ed25519PublicKey(bytes: bytes(publicKey)).verifies(bytes(signature), of: bytes(message)))
  }

  @Test(arguments: examples)
  func nothingElseVerifies(seed: String, publicKey: String, message: String, signature: String) throws {
    let key = try Ed25519PublicKey(bytes: bytes(publicKey))
    let (message, signature) = (bytes(message), bytes(signature))
    for place in signature.indices {
      var changed = signature
      changed[place] ^= 1
      #expect(!key.verifies(changed, of: message), "byte \(place)")
    }
    // The same number again, by the order of the group more: RFC 8032 §5.1.7 refuses it.
    let order = [UInt8](bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"))
    var (larger, carry) = (signature, 0)
    for place in 0..<32 {
      carry += Int(larger[32 + place]) + Int(order[place])
      larger[32 + place] = UInt8(carry & 0xff)
      carry >>= 8
    }
    #expect(!key.verifies(larger, of: message))
    #expect(!key.verifies(signature, of: message + [0]))
    for malformed in [[], Array(signature.dropLast()), signature + [0], [UInt8](repeating: 0, count: 64)] {
      #expect(!key.verifies(malformed, of: message))
    }
    let other = try Ed25519PrivateKey(seed: [UInt8](repeating: 1, count: 32)).publicKey
    #expect(!other.verifies(signature, of: message) && other != key)
    #expect(ERR_peek_error() == 0, "the queue is where TLS looks for its errors")
  }

  @Test(arguments: [0, 31, 33, 64])
  func keysHave32Bytes(count: Int) {
    let bytes = [UInt8](repeating: 1, count: count)
    #expect(throws: CryptographyError.self) { try Ed25519PrivateKey(seed: bytes) }
    #expect(throws: CryptographyError.self) { try Ed25519PublicKey(bytes: bytes) }
  }

  /// The points whose order divides eight, and the encodings of them that are not canonical.
  @Test(arguments: [
    "00", "01", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", "ec", "ed", "ee",
  ])
  func pointsOfSmallOrderAreNoKeys(start: String) throws {
    let known = bytes(start)
    let isLarge = known.count == 1 && known[0] > 1
    var point = known + [UInt8](repeating: isLarge ? 0xff : 0, count: 32 - known.count)
    if isLarge { point[31] = 0x7f }
    for sign in [0, 0x80] as [UInt8] {
      #expect(throws: CryptographyError.self) { try Ed25519PublicKey(bytes: point.dropLast() + [point[31] | sign]) }
    }
    point[1] ^= 1
    #expect(throws: Never.self) { try Ed25519PublicKey(bytes: point) }
  }

  @Test func bytesThatAreNoPointVerifyNothing() throws {
    let key = try Ed25519PublicKey(bytes: [2] + [UInt8](repeating: 0, count: 31))
    #expect(!key.verifies([UInt8](repeating: 0, count: 64), of: []))
    #expect(ERR_peek_error() == 0)
  }

  private func bytes(_ text: String) -> [UInt8] {
    let digits = Array(text)
    return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
  }
}
