import COpenSSL

/// A key that verifies Ed25519 signatures (RFC 8032).
package struct Ed25519PublicKey: Sendable, Hashable {
  /// The number of bytes of a public key.
  package static let byteCount = 32
  /// The number of bytes of a signature.
  package static let signatureSize = 64

  /// The encoded point.
  package let bytes: [UInt8]
  private let key: OpenSSLKey

  /// A key from its encoding. Throws `.malformedKey` unless it has `byteCount` bytes. Bytes that encode no point of the
  /// curve are noticed only by the fact that nothing verifies.
  package init(bytes: [UInt8]) throws(CryptographyError) {
    guard bytes.count == Self.byteCount else {
      throw CryptographyError(.malformedKey, "a key of \(bytes.count) bytes instead of \(Self.byteCount)")
    }
    self.bytes = bytes
    key = try OpenSSLKey.readEd25519(SecretBytes(bytes), isPrivate: false)
  }

  /// Whether `signature` is this key's signature of `message`.
  package func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    guard signature.count == Self.signatureSize, let context = unsafe EVP_MD_CTX_new() else { return false }
    defer {
      unsafe EVP_MD_CTX_free(context)
      // A refused signature leaves its reason on the thread's queue, where SSL_get_error would find it.
      ERR_clear_error()
    }
    return unsafe EVP_DigestVerifyInit(context, nil, nil, nil, key.pointer) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }

  /// Whether both are the same key.
  package static func == (left: Ed25519PublicKey, right: Ed25519PublicKey) -> Bool { left.bytes == right.bytes }

  /// Feeds the encoding.
  package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}
