import COpenSSL
import Synchronization

/// An RSA key that says whether a signature is its own: RS256, that is RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 §3.3).
///
/// The key is parsed once and its contexts are kept, because a context for each message would cost a fifth of the
/// verification itself. OpenSSL lets one thread at a time use a context, hence the lock; without contention it costs
/// nothing measurable.
public final class RSAPublicKey: Sendable {
  /// The size of the modulus in bits.
  public let bitCount: Int
  private let contexts: Mutex<Contexts>

  /// A key from the unsigned big-endian numbers of a JWK (RFC 7518 §6.3.1).
  ///
  /// Throws `.malformedKey` for numbers that cannot be an RSA key. How large a key or an exponent is trusted is for the
  /// caller to decide, who has the numbers.
  public init(modulus: [UInt8], exponent: [UInt8]) throws(CryptographyError) {
    guard let lowest = modulus.last, lowest & 1 == 1 else {
      throw CryptographyError(.malformedKey, "the modulus is even")
    }
    guard modulus.count <= 2048, exponent.count <= 8 else {
      throw CryptographyError(.malformedKey, "a number is too long")
    }
    guard let key = unsafe Self.makeKey(modulus, exponent) else { throw CryptographyError(.malformedKey) }
    defer { unsafe EVP_PKEY_free(key) }
    bitCount = unsafe Int(EVP_PKEY_get_bits(key))
    contexts = Mutex(try unsafe Contexts(key))
  }

  /// Whether `signature` is this key's signature under `message`.
  ///
  /// 15 to 16 µs for 2048 bits, see Benchmarks.
  public func verifiesRS256(_ signature: RawSpan, of message: RawSpan) -> Bool {
    unsafe signature.withUnsafeBytes { signature in
      unsafe message.withUnsafeBytes { message in
        contexts.withLock { unsafe $0.verify(signature, message) }
      }
    }
  }

  /// Whether `signature` is this key's signature under `message`.
  public func verifiesRS256(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    unsafe verifiesRS256(signature.span.bytes, of: message.span.bytes)
  }

  private static func makeKey(_ modulus: [UInt8], _ exponent: [UInt8]) -> OpaquePointer? {
    let n = unsafe BN_bin2bn(modulus, CInt(modulus.count), nil)
    let e = unsafe BN_bin2bn(exponent, CInt(exponent.count), nil)
    let builder = unsafe OSSL_PARAM_BLD_new()
    let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "RSA", nil)
    var key: OpaquePointer?
    defer {
      unsafe BN_free(n)
      unsafe BN_free(e)
      unsafe OSSL_PARAM_BLD_free(builder)
      unsafe EVP_PKEY_CTX_free(context)
    }
    guard
      unsafe OSSL_PARAM_BLD_push_BN(builder, copenssl_OSSL_PKEY_PARAM_RSA_N, n) == 1,
      unsafe OSSL_PARAM_BLD_push_BN(builder, copenssl_OSSL_PKEY_PARAM_RSA_E, e) == 1,
      let parameters = unsafe OSSL_PARAM_BLD_to_param(builder)
    else { return nil }
    defer { unsafe OSSL_PARAM_free(parameters) }
    guard
      unsafe EVP_PKEY_fromdata_init(context) == 1,
      unsafe EVP_PKEY_fromdata(context, &key, copenssl_EVP_PKEY_PUBLIC_KEY, parameters) == 1
    else { return nil }
    return unsafe key
  }
}

/// What OpenSSL needs to verify with one key, made ready once.
@safe private struct Contexts: ~Copyable, @unchecked Sendable {
  // OpenSSL ties no handle to a thread, only to one thread at a time, which the key's lock sees to. The key inside
  // is counted atomically and never changed.
  private let verification: OpaquePointer
  private let algorithm: OpaquePointer
  private let hash: OpaquePointer

  /// Takes a reference of its own to `key`.
  init(_ key: OpaquePointer) throws(CryptographyError) {
    let verification = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key, nil)
    // Fetched once: `EVP_sha256()` stands for a name that OpenSSL would look up, behind a lock, for every message.
    let algorithm = unsafe EVP_MD_fetch(nil, "SHA256", nil)
    let hash = unsafe EVP_MD_CTX_new()
    guard
      let verification = unsafe verification, let algorithm = unsafe algorithm, let hash = unsafe hash,
      unsafe EVP_PKEY_verify_init(verification) == 1,
      unsafe EVP_PKEY_CTX_set_rsa_padding(verification, RSA_PKCS1_PADDING) == 1,
      unsafe EVP_PKEY_CTX_set_signature_md(verification, algorithm) == 1
    else {
      let error = CryptographyError(.malformedKey)
      unsafe EVP_PKEY_CTX_free(verification)
      unsafe EVP_MD_free(algorithm)
      unsafe EVP_MD_CTX_free(hash)
      throw error
    }
    unsafe (self.verification, self.algorithm, self.hash) = (verification, algorithm, hash)
  }

  deinit {
    unsafe EVP_PKEY_CTX_free(verification)
    unsafe EVP_MD_free(algorithm)
    unsafe EVP_MD_CTX_free(hash)
  }

  mutating func verify(_ signature: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer) -> Bool {
    unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: SHA256Digest.byteCount) { digest in
      guard
        let signatureBase = unsafe signature.baseAddress?.assumingMemoryBound(to: UInt8.self),
        unsafe EVP_DigestInit_ex2(hash, algorithm, nil) == 1,
        unsafe EVP_DigestUpdate(hash, message.baseAddress, message.count) == 1,
        unsafe EVP_DigestFinal_ex(hash, digest.baseAddress, nil) == 1,
        unsafe EVP_PKEY_verify(verification, signatureBase, signature.count, digest.baseAddress, digest.count) == 1
      else {
        // A refused signature leaves its reason on the thread's queue, where SSL_get_error would find it and blame a
        // connection that has nothing to do with it.
        ERR_clear_error()
        return false
      }
      return true
    }
  }
}
