import COpenSSL

/// Bytes that nobody can guess, for keys, identifiers and tokens.
public enum SecureRandom {
  /// `count` random bytes. Throws `.noRandomness` when the system has none to give, which a working machine never does.
  public static func bytes(_ count: Int) throws(CryptographyError) -> [UInt8] {
    var isFilled = false
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      unsafe isFilled = RAND_bytes(buffer.baseAddress, CInt(count)) == 1
      initialized = isFilled ? count : 0
    }
    guard isFilled else { throw CryptographyError(.noRandomness) }
    return bytes
  }
}
