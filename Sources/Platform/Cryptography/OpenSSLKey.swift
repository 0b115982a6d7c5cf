import COpenSSL

/// One of OpenSSL's keys, with or without its private part, freed with its owner.
@safe final class OpenSSLKey: @unchecked Sendable {
  // An EVP_PKEY is never changed after it is made, and OpenSSL lets any number of threads read one at a time.
  let pointer: OpaquePointer

  /// Takes the key over.
  private init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  deinit { unsafe EVP_PKEY_free(pointer) }

  /// A new key of the named algorithm; `configure` sets its size or curve and says whether OpenSSL took it.
  static func generate(
    _ algorithm: String, _ configure: (OpaquePointer) -> Bool
  ) throws(CryptographyError) -> OpenSSLKey {
    guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, algorithm, nil) else {
      throw CryptographyError(.generationFailed)
    }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard
      unsafe EVP_PKEY_keygen_init(context) == 1, unsafe configure(context),
      unsafe EVP_PKEY_generate(context, &key) == 1, let key = unsafe key
    else { throw CryptographyError(.generationFailed) }
    return unsafe OpenSSLKey(owning: key)
  }

  /// The private key in PEM text, of whatever algorithm. Encrypted ones are refused: nobody is asked for a passphrase.
  static func read(pem: String) throws(CryptographyError) -> OpenSSLKey {
    var text = pem
    let key = text.withUTF8 { bytes in
      let source = unsafe BIO_new_mem_buf(bytes.baseAddress, CInt(clamping: bytes.count))
      defer { unsafe BIO_free(source) }
      return unsafe PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in -1 }, nil)
    }
    guard let key = unsafe key else { throw CryptographyError(.malformedKey) }
    return unsafe OpenSSLKey(owning: key)
  }

  /// A key without its private part: a point on P-256 in the uncompressed form (SEC 1 §2.3.3).
  static func readPoint(onP256 point: [UInt8]) throws(CryptographyError) -> OpenSSLKey {
    let builder = unsafe OSSL_PARAM_BLD_new()
    let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
    var key: OpaquePointer?
    defer {
      unsafe OSSL_PARAM_BLD_free(builder)
      unsafe EVP_PKEY_CTX_free(context)
    }
    guard
      unsafe OSSL_PARAM_BLD_push_utf8_string(
        builder, copenssl_OSSL_PKEY_PARAM_GROUP_NAME, copenssl_name_of_P256, 0) == 1,
      unsafe OSSL_PARAM_BLD_push_octet_string(
        builder, copenssl_OSSL_PKEY_PARAM_PUB_KEY, point, point.count) == 1,
      let parameters = unsafe OSSL_PARAM_BLD_to_param(builder)
    else { throw CryptographyError(.malformedKey) }
    defer { unsafe OSSL_PARAM_free(parameters) }
    guard
      unsafe EVP_PKEY_fromdata_init(context) == 1,
      unsafe EVP_PKEY_fromdata(context, &key, copenssl_EVP_PKEY_PUBLIC_KEY, parameters) == 1, let key = unsafe key
    else { throw CryptographyError(.malformedKey) }
    return unsafe OpenSSLKey(owning: key)
  }

  /// An Ed25519 key from its 32 bytes (RFC 8032): the seed of a private key, or a public key.
  static func readEd25519(_ bytes: SecretBytes, isPrivate: Bool) throws(CryptographyError) -> OpenSSLKey {
    let key = unsafe bytes.withBytes {
      unsafe isPrivate
        ? EVP_PKEY_new_raw_private_key_ex(nil, "ED25519", nil, $0, bytes.count)
        : EVP_PKEY_new_raw_public_key_ex(nil, "ED25519", nil, $0, bytes.count)
    }
    guard let key = unsafe key else { throw CryptographyError(.malformedKey) }
    return unsafe OpenSSLKey(owning: key)
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
