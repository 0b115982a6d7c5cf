import COpenSSL

/// A certificate that vouches for itself, with its key: TLS on loopback for `siwa dev` and for tests.
///
/// A client trusts it by having it among its trust anchors; no check is skipped.
public struct SelfSignedCertificate: Sendable {
  /// The certificate as PEM text; it is also the trust anchor that clients need.
  public let certificatePEM: String
  /// The private key as PEM text (PKCS #8), not encrypted: whoever writes it to a file guards the file.
  public let privateKeyPEM: String

  /// A certificate with a new P-256 key for the given names and addresses.
  ///
  /// - Parameters:
  ///   - names: Host names (`localhost`) and IP addresses (`127.0.0.1`, `::1`), at least one.
  ///   - start: The first second, since 1970, at which it is valid.
  ///   - seconds: How long it is valid from there on.
  public init(for names: [String], validFrom start: Int64, seconds: Int64) throws(CryptographyError) {
    let key = try unsafe OpenSSLKey.generate("EC") {
      unsafe EVP_PKEY_CTX_set_ec_paramgen_curve_nid($0, NID_X9_62_prime256v1) == 1
    }
    guard let certificate = unsafe X509_new() else { throw CryptographyError(.certificateFailed) }
    defer { unsafe X509_free(certificate) }
    // The serial number need not be secret, only new: a client that saw an older certificate must not mix them up.
    let serial = try SecureRandom.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 1
    let subject = unsafe X509_get_subject_name(certificate)
    guard
      let first = names.first,
      let alternatives = Self.alternativeNames(names),
      unsafe X509_set_version(certificate, 2) == 1,  // counted from zero: version 3
      unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1,
      unsafe ASN1_TIME_set(X509_getm_notBefore(certificate), time_t(start)) != nil,
      unsafe ASN1_TIME_set(X509_getm_notAfter(certificate), time_t(start + seconds)) != nil,
      unsafe X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, first, -1, -1, 0) == 1,
      unsafe X509_set_issuer_name(certificate, subject) == 1,
      unsafe X509_set_pubkey(certificate, key.pointer) == 1,
      unsafe Self.add(NID_subject_alt_name, alternatives, to: certificate),
      unsafe Self.add(NID_basic_constraints, "critical,CA:FALSE", to: certificate),
      unsafe Self.add(NID_key_usage, "critical,digitalSignature", to: certificate),
      unsafe Self.add(NID_ext_key_usage, "serverAuth", to: certificate),
      unsafe Self.add(NID_subject_key_identifier, "hash", to: certificate),
      unsafe X509_sign(certificate, key.pointer, EVP_sha256()) > 0
    else { throw CryptographyError(.certificateFailed) }
    certificatePEM = try unsafe writePEM(.certificateFailed) { unsafe PEM_write_bio_X509($0, certificate) == 1 }
    privateKeyPEM = try key.pem()
  }

  /// The names in OpenSSL's little language; nil if one has a character that means something in it.
  private static func alternativeNames(_ names: [String]) -> String? {
    var parts: [String] = []
    for name in names {
      let isAddress = name.contains(":") || name.utf8.allSatisfy { $0 == 0x2e || (0x30...0x39).contains($0) }
      let allowed =
        isAddress ? "0123456789abcdefABCDEF.:" : "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-.*"
      guard !name.isEmpty, name.allSatisfy(allowed.contains) else { return nil }
      parts.append((isAddress ? "IP:" : "DNS:") + name)
    }
    return parts.joined(separator: ",")
  }

  private static func add(_ extension: CInt, _ value: String, to certificate: OpaquePointer) -> Bool {
    var context = unsafe X509V3_CTX()
    unsafe X509V3_set_ctx(&context, certificate, certificate, nil, nil, 0)
    guard let made = unsafe X509V3_EXT_conf_nid(nil, &context, `extension`, value) else { return false }
    defer { unsafe X509_EXTENSION_free(made) }
    return unsafe X509_add_ext(certificate, made, -1) == 1
  }
}
