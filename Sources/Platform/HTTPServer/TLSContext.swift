import COpenSSL
import EventLoop

/// A certificate with its key, ready to serve: OpenSSL's SSL_CTX.
///
/// - TLS 1.2 and 1.3 (RFC 8996 forbids what is older), with forward secrecy and AEAD ciphers only, and nothing that
///   OpenSSL's security level 2 calls weak: no RSA key below 2048 bits, no SHA-1 (SSL_CTX_set_security_level(3)).
/// - No compression (CRIME; RFC 9325, section 3.3). A client's renegotiation is answered with the alert
///   no_renegotiation (RFC 5246, section 7.2.2; SSL_OP_NO_RENEGOTIATION): one handshake a connection.
/// - No early data: it can be replayed (RFC 8446, section 8), and what arrives here is acted on.
/// - Sessions go on by tickets alone, never from a cache. Their keys belong to this context, so a session ends with the
///   certificate under which it was made; and they are new every hour, so that nobody who gets hold of them later reads
///   more than that (RFC 9325, section 3.4: keys of tickets undo the forward secrecy of TLS 1.2). Processes that share a
///   port do not share them: there a ticket leads to a full handshake, as RFC 8446, section 4.2.11 has it, and to nothing
///   worse.
/// - ALPN is `http/1.1` or `http/1.0`. A client that offers other protocols alone is refused in the handshake
///   (RFC 7301, section 3.2).
@safe final class TLSContext: @unchecked Sendable {
  // @unchecked: SSL_CTX is counted by OpenSSL and may be used by several threads once it is set up.
  let handle: OpaquePointer

  init(_ configuration: TLSServerConfiguration) throws(HTTPServerError) {
    ERR_clear_error()
    guard let handle = unsafe SSL_CTX_new(TLS_server_method()) else {
      throw HTTPServerError(code: .tls, message: "OpenSSL: \(Self.firstError())")
    }
    unsafe self.handle = handle
    let options = UInt64(
      copenssl_options_no_renegotiation | copenssl_options_no_compression | copenssl_options_server_preference)
    unsafe SSL_CTX_set_security_level(handle, 2)
    unsafe copenssl_set_read_ahead(handle)
    _ = unsafe copenssl_set_session_cache_off(handle)  // answers with what was set before
    _ = unsafe SSL_CTX_set_timeout(handle, Int(Self.ticketLifetime.components.seconds))  // likewise
    _ = unsafe copenssl_set_mode(handle)  // answers with what is set now
    guard
      unsafe copenssl_set_min_version(handle, TLS1_2_VERSION) == 1,
      unsafe SSL_CTX_set_options(handle, options) & options == options,
      unsafe SSL_CTX_set_num_tickets(handle, 1) == 1,
      unsafe SSL_CTX_set_max_early_data(handle, 0) == 1,
      unsafe SSL_CTX_set_cipher_list(handle, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1,
      unsafe copenssl_set_groups(handle, "X25519:P-256:P-384") == 1
    else { throw HTTPServerError(code: .tls, message: "OpenSSL: \(Self.firstError())") }
    unsafe SSL_CTX_set_alpn_select_cb(handle, copenssl_select_http1, nil)
    // An encrypted key is refused: OpenSSL would ask whoever sits at the terminal.
    unsafe SSL_CTX_set_default_passwd_cb(handle) { _, _, _, _ in -1 }
    guard unsafe SSL_CTX_use_certificate_chain_file(handle, configuration.certificateFile) == 1 else {
      throw HTTPServerError(
        code: .certificate,
        message: "the certificate \(configuration.certificateFile): \(Self.firstError()) (wanted: PEM)")
    }
    guard unsafe SSL_CTX_use_PrivateKey_file(handle, configuration.privateKeyFile, SSL_FILETYPE_PEM) == 1 else {
      throw HTTPServerError(
        code: .privateKey,
        message:
          "the private key \(configuration.privateKeyFile): \(Self.firstError()) (wanted: the certificate's, as PEM, "
          + "not encrypted)")
    }
    // A key of another kind than the certificate's, such as P-256 beside RSA, was taken without a word: each kind has a
    // place of its own, and no handshake would find a pair.
    guard unsafe SSL_CTX_check_private_key(handle) == 1 else {
      ERR_clear_error()
      throw HTTPServerError(
        code: .privateKey,
        message: "the private key \(configuration.privateKeyFile): of another kind than the certificate's "
          + "(\(configuration.certificateFile))")
    }
  }

  deinit { unsafe SSL_CTX_free(handle) }

  /// How long a session may be taken up again, and for how long tickets are made under the same keys.
  static let ticketLifetime = Duration.seconds(3600)

  /// Forgets the keys of tickets and makes new ones. OpenSSL made the first with the context.
  func renewTicketKeys() {
    // Without random numbers, which is all that can be missing, no handshake comes to an end either.
    _ = unsafe copenssl_renew_ticket_keys(handle)
  }

  /// The second, since 1970, from which on the certificate is valid.
  var notBefore: Int64? { unsafe certificate.flatMap { unsafe Self.seconds(X509_get0_notBefore($0)) } }

  /// The second, since 1970, in which the certificate expires.
  var notAfter: Int64? { unsafe certificate.flatMap { unsafe Self.seconds(X509_get0_notAfter($0)) } }

  /// The issuer of a certificate that stands in its file alone, though another one has signed it; nil otherwise. A client
  /// that does not have the issuer's certificate refuses ours, and browsers, which fetch it, hide that (RFC 8446, section
  /// 4.4.2: all but the root is to be sent).
  var missingIssuer: String? {
    guard let certificate = unsafe certificate, unsafe copenssl_has_chain(handle) == 0 else { return nil }
    let issuer = unsafe X509_get_issuer_name(certificate)
    if unsafe X509_NAME_cmp(issuer, X509_get_subject_name(certificate)) == 0 { return nil }
    var words = [CChar](repeating: 0, count: 256)
    guard unsafe X509_NAME_oneline(issuer, &words, CInt(words.count)) != nil else { return nil }
    return String(decoding: words.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private var certificate: OpaquePointer? { unsafe SSL_CTX_get0_certificate(handle) }

  private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
    guard let epoch = unsafe ASN1_TIME_set(nil, 0) else { return nil }
    defer { unsafe ASN1_STRING_free(epoch) }
    var (days, seconds) = (CInt(0), CInt(0))
    guard unsafe ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
    return Int64(days) * 86_400 + Int64(seconds)
  }

  /// What OpenSSL says went wrong first, without paths of its own source: what it says after that only follows.
  private static func firstError() -> String {
    let code = ERR_peek_error()
    ERR_clear_error()
    if let text = unsafe ERR_reason_error_string(code) { return unsafe String(cString: text) }
    // A call of the operating system: its errno is the reason.
    return SystemError(code: CInt(truncatingIfNeeded: code & 0x7fff_ffff)).description
  }
}
