import COpenSSL

/// HMAC with SHA-256 (RFC 2104): a keyed hash that nobody without the key can compute or try out.
///
/// It stands for an account in logs and outcomes: the same account, the same hash, and no way back to the person.
public struct HMAC: Sendable {
  private let key: HMACKey

  /// A keyed hash. The key should have 32 random bytes.
  public init(key: [UInt8]) {
    precondition(!key.isEmpty, "a keyed hash needs a key")
    self.key = HMACKey(key)
  }

  /// The keyed hash of `message`. Any number of threads may ask at the same time.
  public func code(for message: RawSpan) -> SHA256Digest {
    unsafe message.withUnsafeBytes { bytes in
      unsafe SHA256Digest { place in
        unsafe key.hash(bytes, into: place)
        return true
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

/// A key of HMAC as the states that SHA-256 is in behind its two paddings (RFC 2104 §4). A message then takes two blocks
/// less, and no call that looks for the algorithm or allocates. Overwritten when the last who has it lets go.
@safe private final class HMACKey: @unchecked Sendable {
  // @unchecked: the states are never changed after they are set.
  private let states: UnsafeMutablePointer<SHA256_CTX>

  init(_ key: [UInt8]) {
    unsafe states = .allocate(capacity: 2)
    unsafe states.initialize(repeating: SHA256_CTX(), count: 2)
    unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.blockSize) { block in
      unsafe block.initialize(repeating: 0)
      if key.count > Self.blockSize {
        // The digest of so long a key stands for it.
        unsafe copenssl_sha256_init(&states[0])
        unsafe copenssl_sha256_update(&states[0], key, key.count)
        unsafe copenssl_sha256_final(&states[0], block.baseAddress)
      } else {
        for (index, byte) in key.enumerated() { unsafe block[index] = byte }
      }
      for (place, padding) in [0x36, 0x5c].enumerated() as EnumeratedSequence<[UInt8]> {
        for index in block.indices { unsafe block[index] ^= padding }
        unsafe copenssl_sha256_init(&states[place])
        unsafe copenssl_sha256_update(&states[place], block.baseAddress, block.count)
        for index in block.indices { unsafe block[index] ^= padding }
      }
      unsafe OPENSSL_cleanse(block.baseAddress, block.count)
    }
  }

  deinit {
    unsafe OPENSSL_cleanse(states, 2 * MemoryLayout<SHA256_CTX>.stride)
    unsafe states.deallocate()
  }

  /// Writes the message's 32 bytes. What SHA-256 has of the message or the key beside them, it overwrites itself.
  func hash(_ message: UnsafeRawBufferPointer, into place: UnsafeMutablePointer<UInt8>) {
    var state = unsafe states[0]
    unsafe copenssl_sha256_update(&state, message.baseAddress, message.count)
    unsafe copenssl_sha256_final(&state, place)
    unsafe state = states[1]
    unsafe copenssl_sha256_update(&state, place, SHA256Digest.byteCount)
    unsafe copenssl_sha256_final(&state, place)
  }

  private static let blockSize = 64
}
