import COpenSSL

/// One of OpenSSL's keys with its private part, freed with its owner.
@safe final class PrivateKey: @unchecked Sendable {
  // An EVP_PKEY is never changed after it is made, and OpenSSL lets any number of threads read one at a time.
  let pointer: OpaquePointer

  /// Takes the key over.
  private init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  deinit { unsafe EVP_PKEY_free(pointer) }

  /// A new key of the named algorithm; `configure` sets its size or curve and says whether OpenSSL took it.
  static func generate(
    _ algorithm: String, _ configure: (OpaquePointer) -> Bool
  ) throws(CryptographyError) -> PrivateKey {
    guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, algorithm, nil) else {
      throw CryptographyError(.generationFailed)
    }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard
      unsafe EVP_PKEY_keygen_init(context) == 1, unsafe configure(context),
      unsafe EVP_PKEY_generate(context, &key) == 1, let key = unsafe key
    else { throw CryptographyError(.generationFailed) }
    return unsafe PrivateKey(owning: key)
  }

  /// The key in PEM text, of whatever algorithm. Encrypted ones are refused: nobody is asked for a passphrase.
  static func read(pem: String) throws(CryptographyError) -> PrivateKey {
    var text = pem
    let key = text.withUTF8 { bytes in
      let source = unsafe BIO_new_mem_buf(bytes.baseAddress, CInt(clamping: bytes.count))
      defer { unsafe BIO_free(source) }
      return unsafe PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in -1 }, nil)
    }
    guard let key = unsafe key else { throw CryptographyError(.malformedKey) }
    return unsafe PrivateKey(owning: key)
  }

  /// The key as PEM text (PKCS #8), not encrypted.
  func pem() throws(CryptographyError) -> String {
    try unsafe writePEM(.generationFailed) {
      unsafe PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil) == 1
    }
  }
}

/// Collects what `write` puts into an OpenSSL stream; `write` says whether it could.
func writePEM(
  _ failure: CryptographyError.Code, _ write: (OpaquePointer) -> Bool
) throws(CryptographyError) -> String {
  guard let sink = unsafe BIO_new(BIO_s_mem()) else { throw CryptographyError(failure) }
  defer { unsafe BIO_free(sink) }
  guard unsafe write(sink) else { throw CryptographyError(failure) }
  let size = unsafe BIO_ctrl_pending(sink)
  return unsafe String(unsafeUninitializedCapacity: size) { buffer in
    var count = 0
    return unsafe BIO_read_ex(sink, buffer.baseAddress, size, &count) == 1 ? count : 0
  }
}
