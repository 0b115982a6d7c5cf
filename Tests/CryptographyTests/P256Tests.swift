import Cryptography
import Foundation
import TestSupport
import Testing

@Suite struct P256Tests {
  /// A signature that somebody else made, and the point whose key made it.
  struct Vector: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let x, y, signature: [UInt8]
    let message: [UInt8]
  }

  static let vectors = [
    // RFC 7515, appendix A.3
    Vector(
      testDescription: "RFC 7515",
      x: base64url("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
      y: base64url("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"),
      signature: base64url("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"),
      message: Array(
        ("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt"
          + "cGxlLmNvbS9pc19yb290Ijp0cnVlfQ").utf8)),
    // RFC 6979, appendix A.2.5, with SHA-256
    Vector(
      testDescription: "RFC 6979, sample", x: rfc6979.x, y: rfc6979.y,
      signature: hex(
        "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716"
          + "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"),
      message: Array("sample".utf8)),
    Vector(
      testDescription: "RFC 6979, test", x: rfc6979.x, y: rfc6979.y,
      signature: hex(
        "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367"
          + "019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083"),
      message: Array("test".utf8)),
  ]

  private static let rfc6979 = (
    x: hex("60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6"),
    y: hex("7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299")
  )

  @Test(arguments: vectors) func verifiesWhatTheStandardsSigned(_ vector: Vector) throws {
    let key = try P256PublicKey(x: vector.x, y: vector.y)
    #expect(key.verifiesES256(vector.signature, of: vector.message))
    #expect(!key.verifiesES256(vector.signature, of: vector.message + [0]))
    for index in vector.signature.indices {
      var signature = vector.signature
      signature[index] ^= 0x10
      #expect(!key.verifiesES256(signature, of: vector.message), "byte \(index)")
    }
    for signature in [[], [0], vector.signature + [0], Array(vector.signature.dropLast())] {
      #expect(!key.verifiesES256(signature, of: vector.message))
    }
    #expect(!key.verifiesES256([UInt8](repeating: 0, count: 64), of: vector.message))
  }

  @Test func signsWhatItsPublicKeyVerifies() throws {
    let key = try P256PrivateKey()
    let publicKey = try key.publicKey
    let copy = try P256PublicKey(x: publicKey.x, y: publicKey.y)
    // Often enough for numbers with zeros in front, which ASN.1 leaves out.
    for round in 0..<600 {
      let message = Array("message \(round)".utf8)
      let signature = try key.signES256(message)
      #expect(signature.count == 64)
      #expect(copy.verifiesES256(signature, of: message))
      #expect(!copy.verifiesES256(signature, of: message + [1]))
    }
    #expect(copy.verifiesES256(try key.signES256([UInt8]()), of: []))
  }

  @Test func comesBackFromItsPEMText() throws {
    let key = try P256PrivateKey()
    let pem = try key.pem()
    #expect(pem.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
    let copy = try P256PrivateKey(pem: pem)
    #expect(try copy.publicKey.verifiesES256(key.signES256([1, 2, 3]), of: [1, 2, 3]))
  }

  @Test func refusesKeysOfAnotherKindAndSaysWhy() throws {
    let rsa = try RSAPrivateKey(bitCount: 2048).pem()
    // openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384, and the same with ED25519
    let p384 = """
      -----BEGIN PRIVATE KEY-----
      MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDC+1PHuiDhJRFXuUby9
      nGcwnfKPihLEB9E7Qcgzc7RJc8SVBUFxzI0INTGVlDsEgzKhZANiAAR/e0QfiW/c
      BVOzCS6HMd7f5GD1aU2RvMv0bozH2+J9nAZv65w32tZRM5mKDRQeQl8NXTe6fmKk
      5TxfiB//Oe16PpgTNCl+amsG/8Bz5n+p8dgAVD4684dqz8FHysbII2E=
      -----END PRIVATE KEY-----

      """
    let ed25519 = """
      -----BEGIN PRIVATE KEY-----
      MC4CAQAwBQYDK2VwBCIEIIrtB+g/xf4AeLat+8HWIQzQGbww3E/BcCgMJgYdTRhE
      -----END PRIVATE KEY-----

      """
    for (pem, words) in [
      (rsa, "not a key on an elliptic curve"), (ed25519, "not a key on an elliptic curve"),
      (p384, "a key on another curve than P-256"), ("", "unsupported"), ("no key", "unsupported"),
      ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "unsupported"),
    ] {
      #expect { try P256PrivateKey(pem: pem) } throws: { error in
        guard let error = error as? CryptographyError else { return false }
        return error.code == .malformedKey && error.description.contains(words)
      }
    }
    #expect(throws: CryptographyError.self) { try RSAPrivateKey(pem: P256PrivateKey().pem()) }
  }

  @Test func refusesAPointThatIsNotOnTheCurve() {
    let (x, y) = (Self.rfc6979.x, Self.rfc6979.y)
    for (x, y) in [([], []), (x, x), (x + [0], y), (Array(x.dropLast()), y), (x, [UInt8](repeating: 0, count: 32))] {
      #expect { try P256PublicKey(x: x, y: y) } throws: { ($0 as? CryptographyError)?.code == .malformedKey }
    }
  }

  /// The other implementation reads our key's PEM and verifies our signature, and we verify what it signs with the key.
  @Test(Python.isThere) func anotherImplementationSignsAndVerifiesTheSame() async throws {
    let key = try P256PrivateKey()
    let message = Array("a message".utf8)
    let run = try await Python.run(
      "Tests/CryptographyTests/Python/es256.py", [Base64URL.encode(try key.signES256(message))],
      input: Array(try key.pem().utf8))
    #expect(run.end == .exit(0), "\(run.errors)")
    let lines = String(decoding: run.output, as: UTF8.self).split(separator: "\n").map(String.init)
    try #require(lines.count == 3)
    let publicKey = try key.publicKey
    #expect(lines[0] == Base64URL.encode(publicKey.x) && lines[1] == Base64URL.encode(publicKey.y))
    #expect(publicKey.verifiesES256(Self.base64url(lines[2]), of: message))
  }

  private static func base64url(_ text: String) -> [UInt8] { Base64URL.decode(text) ?? [] }

  private static func hex(_ text: String) -> [UInt8] {
    stride(from: 0, to: text.utf8.count, by: 2).compactMap { offset in
      UInt8(text.dropFirst(offset).prefix(2), radix: 16)
    }
  }
}
