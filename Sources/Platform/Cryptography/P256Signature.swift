import COpenSSL

/// The two forms of a signature on P-256: the two numbers as they are, as a JWS has them (RFC 7518 §3.4), and in ASN.1,
/// as OpenSSL has them.
enum P256Signature {
  /// How many bytes each number has.
  static let numberSize = 32

  /// From ASN.1 to the two numbers, one after the other; nil for what is no such signature.
  static func raw(encoded: [UInt8]) -> [UInt8]? {
    let signature = unsafe encoded.withUnsafeBufferPointer { bytes in
      var place = bytes.baseAddress
      return unsafe d2i_ECDSA_SIG(nil, &place, bytes.count)
    }
    guard let signature = unsafe signature else {
      ERR_clear_error()
      return nil
    }
    defer { unsafe ECDSA_SIG_free(signature) }
    var r = [UInt8](repeating: 0, count: numberSize), s = r
    let size = CInt(numberSize)
    guard
      unsafe BN_bn2binpad(ECDSA_SIG_get0_r(signature), &r, size) == size,
      unsafe BN_bn2binpad(ECDSA_SIG_get0_s(signature), &s, size) == size
    else { return nil }
    return r + s
  }

  /// From the two numbers to ASN.1; nil where there are not 64 bytes.
  static func encoded(raw: [UInt8]) -> [UInt8]? {
    guard raw.count == 2 * numberSize, let signature = unsafe ECDSA_SIG_new() else { return nil }
    defer { unsafe ECDSA_SIG_free(signature) }
    let r = unsafe BN_bin2bn(Array(raw[..<numberSize]), CInt(numberSize), nil)
    let s = unsafe BN_bin2bn(Array(raw[numberSize...]), CInt(numberSize), nil)
    // The signature owns both numbers from here on success only.
    guard unsafe ECDSA_SIG_set0(signature, r, s) == 1 else {
      unsafe BN_free(r)
      unsafe BN_free(s)
      return nil
    }
    let count = unsafe i2d_ECDSA_SIG(signature, nil)
    guard count > 0 else { return nil }
    var encoded = [UInt8](repeating: 0, count: Int(count))
    let written = unsafe encoded.withUnsafeMutableBufferPointer { bytes in
      var place = bytes.baseAddress
      return unsafe i2d_ECDSA_SIG(signature, &place)
    }
    return written == count ? encoded : nil
  }
}
