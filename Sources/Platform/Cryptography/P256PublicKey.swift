import COpenSSL

/// A key on the curve P-256 that says whether a signature is its own: ES256 (RFC 7518 §3.4).
public struct P256PublicKey: Sendable {
  /// The point's first coordinate: 32 bytes, big-endian, as a JWK has it (RFC 7518 §6.2.1).
  public let x: [UInt8]
  /// The point's second coordinate, in the same form.
  public let y: [UInt8]
  private let key: OpenSSLKey

  /// The public part of a private key.
  init(_ key: OpenSSLKey, x: [UInt8], y: [UInt8]) { (self.key, self.x, self.y) = (key, x, y) }

  /// A key from the coordinates of a JWK. Throws `.malformedKey` for a point that is not on the curve.
  public init(x: [UInt8], y: [UInt8]) throws(CryptographyError) {
    guard x.count == P256Signature.numberSize, y.count == P256Signature.numberSize else {
      throw CryptographyError(.malformedKey, "a coordinate that has not 32 bytes")
    }
    (self.x, self.y) = (x, y)
    key = try OpenSSLKey.readPoint(onP256: [4] + x + y)
  }

  /// Whether `signature`, r and s in 32 bytes each, is this key's signature under `message`.
  public func verifiesES256(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    guard let encoded = P256Signature.encoded(raw: signature), let context = unsafe EVP_MD_CTX_new() else {
      return false
    }
    defer {
      unsafe EVP_MD_CTX_free(context)
      // A refused signature leaves its reason on the thread's queue, where SSL_get_error would find it.
      ERR_clear_error()
    }
    return unsafe EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key.pointer) == 1
      && EVP_DigestVerify(context, encoded, encoded.count, message, message.count) == 1
  }
}
