import COpenSSL

/// A key that signs with Ed25519 (RFC 8032). Signatures are deterministic.
package struct Ed25519PrivateKey: Sendable {
  /// The number of bytes of a seed.
  package static let seedSize = 32

  /// The key that verifies this key's signatures.
  package let publicKey: Ed25519PublicKey
  private let key: OpenSSLKey

  /// The key that follows from a seed: `seedSize` secret random bytes. Throws `.malformedKey` for another number.
  package init(seed: [UInt8]) throws(CryptographyError) {
    guard seed.count == Self.seedSize else {
      throw CryptographyError(.malformedKey, "a seed of \(seed.count) bytes instead of \(Self.seedSize)")
    }
    key = try OpenSSLKey.readEd25519(SecretBytes(seed), isPrivate: true)
    var (point, count) = ([UInt8](repeating: 0, count: Ed25519PublicKey.byteCount), Ed25519PublicKey.byteCount)
    guard unsafe EVP_PKEY_get_raw_public_key(key.pointer, &point, &count) == 1, count == point.count else {
      throw CryptographyError(.malformedKey)
    }
    publicKey = try Ed25519PublicKey(bytes: point)
  }

  /// The signature of `message`, 64 bytes.
  package func sign(_ message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    guard let context = unsafe EVP_MD_CTX_new() else { throw CryptographyError(.signingFailed) }
    defer { unsafe EVP_MD_CTX_free(context) }
    var (signature, count) = (
      [UInt8](repeating: 0, count: Ed25519PublicKey.signatureSize), Ed25519PublicKey.signatureSize
    )
    guard
      unsafe EVP_DigestSignInit(context, nil, nil, nil, key.pointer) == 1,
      unsafe EVP_DigestSign(context, &signature, &count, message, message.count) == 1, count == signature.count
    else { throw CryptographyError(.signingFailed) }
    return signature
  }
}
