import Cryptography
import Foundation
import Testing

@Suite struct RSATests {
  @Test func verifiesWhatTheOpenSSLProgramSigned() throws {
    let key = try RSAPublicKey(modulus: Example.modulus, exponent: [1, 0, 1])
    #expect(key.bitCount == 2048)
    #expect(key.verifiesRS256(Example.signature, of: Example.message))
  }

  @Test func refusesEveryChangedByteOfASignature() throws {
    let key = try RSAPublicKey(modulus: Example.modulus, exponent: [1, 0, 1])
    for index in Example.signature.indices {
      var signature = Example.signature
      signature[index] ^= 0x10
      #expect(!key.verifiesRS256(signature, of: Example.message), "byte \(index)")
    }
    #expect(key.verifiesRS256(Example.signature, of: Example.message), "still works")
  }

  @Test(arguments: [0, 1, 255, 257, 512])
  func refusesASignatureOfAnotherLength(count: Int) throws {
    let key = try RSAPublicKey(modulus: Example.modulus, exponent: [1, 0, 1])
    let shortened = Array(Example.signature.prefix(count))
    let padding = [UInt8](repeating: 0, count: count - shortened.count)
    #expect(!key.verifiesRS256(shortened + padding, of: Example.message))
    #expect(!key.verifiesRS256(padding + shortened, of: Example.message))
  }

  @Test func signsWhatItsPublicKeyVerifies() throws {
    let key = try RSAPrivateKey(bitCount: 2048)
    #expect(try key.exponent == [1, 0, 1])
    for message in [[], [0], Array("a message".utf8)] as [[UInt8]] {
      let signature = try key.signRS256(message)
      #expect(signature.count == 256)
      #expect(try key.publicKey.verifiesRS256(signature, of: message))
      let other = message + [1]
      #expect(try !key.publicKey.verifiesRS256(signature, of: other))
    }
  }

  @Test func comesBackFromItsPEMText() throws {
    let key = try RSAPrivateKey(bitCount: 2048)
    let copy = try RSAPrivateKey(pem: key.pem())
    #expect(try copy.modulus == key.modulus)
    #expect(try copy.signRS256([1, 2, 3]) == key.signRS256([1, 2, 3]))
  }

  @Test(arguments: ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
  func refusesTextThatIsNoKey(pem: String) {
    #expect { try RSAPrivateKey(pem: pem) } throws: { ($0 as? CryptographyError)?.code == .malformedKey }
  }

  @Test func refusesAKeyOfAnotherAlgorithm() throws {
    let certificate = try SelfSignedCertificate(for: ["localhost"], validFrom: 0, seconds: 60)
    #expect { try RSAPrivateKey(pem: certificate.privateKeyPEM) } throws: {
      ($0 as? CryptographyError)?.code == .malformedKey
    }
  }

  @Test func refusesNumbersThatAreNoKey() {
    let tooLong = [UInt8](repeating: 0xff, count: 2049)
    for (modulus, exponent) in [
      ([], [1, 0, 1]), ([0], [1, 0, 1]), ([4], [1, 0, 1]), (tooLong, [1, 0, 1]), (Example.modulus, tooLong),
    ] as [([UInt8], [UInt8])] {
      #expect { try RSAPublicKey(modulus: modulus, exponent: exponent) } throws: {
        ($0 as? CryptographyError)?.code == .malformedKey
      }
    }
  }

  @Test func strangeNumbersNeverVerifyAnything() throws {
    for (modulus, exponent) in [([1], [1]), ([3], [3]), (Example.modulus, []), (Example.modulus, [1])]
      as [([UInt8], [UInt8])]
    {
      guard let key = try? RSAPublicKey(modulus: modulus, exponent: exponent) else { continue }
      #expect(!key.verifiesRS256(Example.signature, of: Example.message))
    }
  }

  @Test func manyThreadsMayUseOneKey() async throws {
    let key = try RSAPublicKey(modulus: Example.modulus, exponent: [1, 0, 1])
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          (0..<200).allSatisfy { _ in
            key.verifiesRS256(Example.signature, of: Example.message)
          }
        }
      }
      for await isVerified in group { #expect(isVerified) }
    }
  }
}
