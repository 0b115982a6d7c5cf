import COpenSSL

/// HMAC with SHA-256 (RFC 2104): a keyed hash that nobody without the key can compute or try out.
///
/// It stands for an account in logs and outcomes: the same account, the same hash, and no way back to the person.
public struct HMAC: Sendable {
  private let key: SecretBytes

  /// A keyed hash. The key should have 32 random bytes.
  public init(key: [UInt8]) {
    precondition(!key.isEmpty, "a keyed hash needs a key")
    self.key = SecretBytes(key)
  }

  /// The keyed hash of `message`.
  public func code(for message: RawSpan) -> SHA256Digest {
    unsafe message.withUnsafeBytes { bytes in
      unsafe SHA256Digest { place in
        // OpenSSL takes NULL for "no data since the last call", so an empty message needs an address.
        var empty: UInt8 = 0
        return unsafe withUnsafePointer(to: &empty) { fallback in
          let base = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? fallback
          return unsafe key.withBytes { key in
            unsafe COpenSSL.HMAC(EVP_sha256(), key, CInt(self.key.count), base, bytes.count, place, nil) != nil
          }
        }
      }
    }
  }

  /// The keyed hash of `message`.
  public func code(for message: [UInt8]) -> SHA256Digest { unsafe code(for: message.span.bytes) }
}

extension HMAC: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The name of the function; never the key.
  public var description: String { "HMAC-SHA256" }
  /// The same.
  public var debugDescription: String { description }
  /// Nothing: a dump must not show the key.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
