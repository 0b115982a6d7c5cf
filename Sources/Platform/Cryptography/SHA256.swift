import COpenSSL

/// The 32 bytes that SHA-256 or HMAC-SHA-256 makes of a message.
public struct SHA256Digest: Sendable, Hashable, CustomStringConvertible {
  /// How many bytes a digest has.
  public static let byteCount = 32

  /// The bytes, first one first.
  public let bytes: [UInt8]

  /// 64 lowercase hexadecimal digits.
  public var description: String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  /// A digest that was kept or sent; nil unless there are 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// Whether both are the same, in a time that says nothing about where they differ: for what somebody else claims to be
  /// the right one.
  public func matches(_ other: SHA256Digest) -> Bool {
    unsafe bytes.withUnsafeBytes { mine in
      unsafe other.bytes.withUnsafeBytes { theirs in
        unsafe CRYPTO_memcmp(mine.baseAddress, theirs.baseAddress, Self.byteCount) == 0
      }
    }
  }

  /// Takes what `fill` writes into the place for 32 bytes; `fill` says whether it could.
  init(_ fill: (UnsafeMutablePointer<UInt8>) -> Bool) {
    // Copied from the stack: the initializer that leaves memory uninitialized looks up a type at run time, which takes longer.
    bytes = unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.byteCount) { buffer in
      guard let base = buffer.baseAddress, unsafe fill(base) else {
        preconditionFailure("OpenSSL has no SHA-256: its default provider is missing")
      }
      return unsafe Array(UnsafeRawBufferPointer(start: base, count: Self.byteCount))
    }
  }
}

/// The hash function SHA-256 (FIPS 180-4).
public enum SHA256 {
  /// The digest of `message`.
  public static func digest(of message: RawSpan) -> SHA256Digest {
    unsafe message.withUnsafeBytes { bytes in
      // Not by EVP, which looks the algorithm up and allocates for every message.
      unsafe SHA256Digest { place in
        unsafe copenssl_sha256(bytes.baseAddress, bytes.count, place)
        return true
      }
    }
  }

  /// The digest of `message`.
  public static func digest(of message: [UInt8]) -> SHA256Digest { unsafe digest(of: message.span.bytes) }

  /// Writes the digest of `message` to the first 32 bytes of `place`, which may lie in the message. It neither allocates nor
  /// looks the algorithm up.
  package static func digest(of message: UnsafeRawBufferPointer, into place: UnsafeMutableRawBufferPointer) {
    precondition(place.count >= SHA256Digest.byteCount)
    guard let digest = unsafe place.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
    unsafe copenssl_sha256(message.baseAddress, message.count, digest)
  }

  /// Writes the digest of `prefix` followed by `message` to the first 32 bytes of `place`: a leaf or a node of a Merkle
  /// tree (RFC 6962 §2.1). It neither allocates nor looks the algorithm up.
  package static func digest(
    of prefix: UInt8, _ message: UnsafeRawBufferPointer, into place: UnsafeMutableRawBufferPointer
  ) {
    precondition(place.count >= SHA256Digest.byteCount)
    guard let digest = unsafe place.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
    unsafe copenssl_sha256_prefixed(prefix, message.baseAddress, message.count, digest)
  }
}
