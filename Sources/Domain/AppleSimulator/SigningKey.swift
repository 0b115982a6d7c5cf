package import Cryptography

/// One of Apple's keys, with the part that Apple never shows.
package struct SigningKey: Sendable {
  /// The name under which it stands in the key set.
  package let kid: String
  /// The key itself.
  package let privateKey: RSAPrivateKey

  /// A key from its parts.
  package init(kid: String, key: RSAPrivateKey) { (self.kid, privateKey) = (kid, key) }

  /// A new key of 2048 bits, with a `kid` of 6 to 10 characters as Apple's have been so far. Takes about 50 ms.
  package static func generate() throws(CryptographyError) -> SigningKey {
    let random = try SecureRandom.bytes(11).map(Int.init)
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    let kid = random[1..<(7 + random[0] % 5)].map { String(alphabet[$0 % alphabet.count]) }.joined()
    return SigningKey(kid: kid, key: try RSAPrivateKey(bitCount: 2048))
  }

  /// The public part as a member of the key set, in Apple's order.
  func jwk() throws(CryptographyError) -> Members {
    Members([
      "kty": quoted("RSA"), "kid": quoted(kid), "use": quoted("sig"), "alg": quoted("RS256"),
      "n": quoted(Base64URL.encode(try privateKey.modulus)), "e": quoted(Base64URL.encode(try privateKey.exponent)),
    ])
  }
}
