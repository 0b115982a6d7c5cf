import COpenSSL

/// A key on the curve P-256 that signs ES256 (RFC 7518 §3.4): what Apple gives a developer as a `.p8` file.
public struct P256PrivateKey: Sendable {
  private let key: OpenSSLKey

  /// A new key.
  public init() throws(CryptographyError) {
    key = try unsafe OpenSSLKey.generate("EC") {
      unsafe EVP_PKEY_CTX_set_ec_paramgen_curve_nid($0, NID_X9_62_prime256v1) == 1
    }
  }

  /// The key in PEM text (PKCS #8), not encrypted. A key of another kind or on another curve is refused.
  public init(pem: String) throws(CryptographyError) {
    key = try OpenSSLKey.read(pem: pem)
    guard unsafe EVP_PKEY_get_base_id(key.pointer) == EVP_PKEY_EC else {
      throw CryptographyError(.malformedKey, "not a key on an elliptic curve")
    }
    var name = [CChar](repeating: 0, count: 64)
    guard
      unsafe EVP_PKEY_get_group_name(key.pointer, &name, name.count, nil) == 1,
      unsafe OBJ_sn2nid(name) == NID_X9_62_prime256v1
    else {
      ERR_clear_error()
      throw CryptographyError(.malformedKey, "a key on another curve than P-256")
    }
  }

  /// The key as PEM text (PKCS #8), not encrypted.
  public func pem() throws(CryptographyError) -> String { try key.pem() }

  /// The key that verifies what this one signs.
  public var publicKey: P256PublicKey {
    get throws(CryptographyError) {
      P256PublicKey(
        key, x: try number(OSSL_PKEY_PARAM_EC_PUB_X), y: try number(OSSL_PKEY_PARAM_EC_PUB_Y))
    }
  }

  /// This key's ES256 signature under `message`: r and s, each in 32 bytes, as a JWS has them.
  public func signES256(_ message: RawSpan) throws(CryptographyError) -> [UInt8] {
    guard let context = unsafe EVP_MD_CTX_new() else { throw CryptographyError(.signingFailed) }
    defer { unsafe EVP_MD_CTX_free(context) }
    guard unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key.pointer) == 1 else {
      throw CryptographyError(.signingFailed)
    }
    var count = unsafe Int(EVP_PKEY_get_size(key.pointer))
    var encoded = [UInt8](repeating: 0, count: count)
    let isSigned = unsafe message.withUnsafeBytes { bytes in
      unsafe EVP_DigestSign(context, &encoded, &count, bytes.baseAddress, bytes.count) == 1
    }
    guard isSigned, let signature = P256Signature.raw(encoded: Array(encoded.prefix(count))) else {
      throw CryptographyError(.signingFailed)
    }
    return signature
  }

  /// This key's ES256 signature under `message`: r and s, each in 32 bytes, as a JWS has them.
  public func signES256(_ message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try unsafe signES256(message.span.bytes)
  }

  private func number(_ name: String) throws(CryptographyError) -> [UInt8] {
    var number: OpaquePointer?
    guard unsafe EVP_PKEY_get_bn_param(key.pointer, name, &number) == 1 else { throw CryptographyError(.malformedKey) }
    defer { unsafe BN_free(number) }
    var bytes = [UInt8](repeating: 0, count: P256Signature.numberSize)
    guard unsafe BN_bn2binpad(number, &bytes, CInt(bytes.count)) == CInt(bytes.count) else {
      throw CryptographyError(.malformedKey)
    }
    return bytes
  }
}
