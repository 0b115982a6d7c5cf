import COpenSSL

/// The bytes of a key in memory of their own: overwritten when the last who has them lets go, and never copied before.
@safe final class SecretBytes: @unchecked Sendable {
  // @unchecked: they are never changed after they are set.
  private let memory: UnsafeMutableBufferPointer<UInt8>

  /// How many there are.
  var count: Int { unsafe memory.count }

  /// Copies the bytes. What becomes of `bytes` is the caller's business.
  init(_ bytes: [UInt8]) {
    unsafe memory = .allocate(capacity: bytes.count)
    _ = unsafe memory.initialize(from: bytes)
  }

  deinit {
    unsafe OPENSSL_cleanse(memory.baseAddress, memory.count)
    unsafe memory.deallocate()
  }

  /// Lends the bytes to a call of OpenSSL, which must not keep the pointer.
  func withBytes<Value>(_ body: (UnsafePointer<UInt8>) -> Value) -> Value {
    guard let start = unsafe memory.baseAddress else { preconditionFailure("memory that was allocated has an address") }
    return unsafe body(start)
  }
}
