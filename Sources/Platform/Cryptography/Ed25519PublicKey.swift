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

  /// A key from its encoding. Throws `.malformedKey` unless it has `byteCount` bytes, and for a point of small order, by
  /// which signatures verify that nobody has a key for. Bytes that encode no point of the curve are noticed only by the fact
  /// that nothing verifies.
  package init(bytes: [UInt8]) throws(CryptographyError) {
    guard bytes.count == Self.byteCount else {
      throw CryptographyError(.malformedKey, "a key of \(bytes.count) bytes instead of \(Self.byteCount)")
    }
    guard !Self.smallOrders.contains(Self.withoutSign(bytes)) else {
      throw CryptographyError(.malformedKey, "a point of small order")
    }
    self.bytes = bytes
    key = try OpenSSLKey.readEd25519(SecretBytes(bytes), isPrivate: false)
  }

  /// The y of all points whose order divides eight, as RFC 8032 encodes them and as p + y where that fits: 0, 1, two of the
  /// order eight, p - 1, p and p + 1. The sign of x is left out.
  private static let smallOrders: Set<[UInt8]> = {
    let eighth: [UInt8] = [
      0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
      0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ]
    // p - y, which borrows nowhere: the lowest byte of p is 0xed, the highest 0x7f, all others are 0xff.
    let prime = [0xed] + [UInt8](repeating: 0xff, count: 30) + [0x7f]
    let small = [0, 1].map { [$0] + [UInt8](repeating: 0, count: 31) }
    let large = [0xec, 0xed, 0xee].map { [$0] + prime.dropFirst() }
    return Set(small + large + [eighth, zip(prime, eighth).map { $0 - $1 }])
  }()

  private static func withoutSign(_ bytes: [UInt8]) -> [UInt8] { bytes.dropLast() + [(bytes.last ?? 0) & 0x7f] }

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
