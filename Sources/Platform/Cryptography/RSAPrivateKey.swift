import COpenSSL

/// An RSA key that signs as Apple's keys do: RS256.
public struct RSAPrivateKey: Sendable {
  private let key: OpenSSLKey

  /// A new key with the public exponent 65537. 2048 bits take about 50 ms.
  public init(bitCount: Int) throws(CryptographyError) {
    key = try unsafe OpenSSLKey.generate("RSA") {
      unsafe EVP_PKEY_CTX_set_rsa_keygen_bits($0, CInt(clamping: bitCount)) == 1
    }
  }

  /// The RSA key in PEM text, not encrypted.
  public init(pem: String) throws(CryptographyError) {
    key = try OpenSSLKey.read(pem: pem)
    guard unsafe EVP_PKEY_get_base_id(key.pointer) == EVP_PKEY_RSA else {
      throw CryptographyError(.malformedKey, "not an RSA key")
    }
  }

  /// The key as PEM text (PKCS #8), not encrypted.
  public func pem() throws(CryptographyError) -> String { try key.pem() }

  /// The public key's modulus: an unsigned big-endian number, as a JWK has it (RFC 7518 §6.3.1).
  public var modulus: [UInt8] { get throws(CryptographyError) { try number(OSSL_PKEY_PARAM_RSA_N) } }

  /// The public key's exponent, in the same form.
  public var exponent: [UInt8] { get throws(CryptographyError) { try number(OSSL_PKEY_PARAM_RSA_E) } }

  /// The key that verifies what this one signs.
  public var publicKey: RSAPublicKey {
    get throws(CryptographyError) { try RSAPublicKey(modulus: modulus, exponent: exponent) }
  }

  /// This key's RS256 signature under `message`.
  public func signRS256(_ message: RawSpan) throws(CryptographyError) -> [UInt8] {
    guard let context = unsafe EVP_MD_CTX_new() else { throw CryptographyError(.signingFailed) }
    defer { unsafe EVP_MD_CTX_free(context) }
    // PKCS #1 v1.5 is OpenSSL's padding for RSA where nothing else is asked for.
    guard unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key.pointer) == 1 else {
      throw CryptographyError(.signingFailed)
    }
    var count = unsafe Int(EVP_PKEY_get_size(key.pointer))
    var signature = [UInt8](repeating: 0, count: count)
    let isSigned = unsafe message.withUnsafeBytes { bytes in
      unsafe EVP_DigestSign(context, &signature, &count, bytes.baseAddress, bytes.count) == 1
    }
    guard isSigned, count == signature.count else { throw CryptographyError(.signingFailed) }
    return signature
  }

  /// This key's RS256 signature under `message`.
  public func signRS256(_ message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try unsafe signRS256(message.span.bytes)
  }

  private func number(_ name: String) throws(CryptographyError) -> [UInt8] {
    var number: OpaquePointer?
    guard unsafe EVP_PKEY_get_bn_param(key.pointer, name, &number) == 1 else { throw CryptographyError(.malformedKey) }
    defer { unsafe BN_free(number) }
    var bytes = unsafe [UInt8](repeating: 0, count: (Int(BN_num_bits(number)) + 7) / 8)
    unsafe BN_bn2bin(number, &bytes)
    return bytes
  }
}
