import COpenSSL
import EventLoop

/// A certificate with its key, ready to serve: OpenSSL's SSL_CTX.
///
/// TLS 1.2 and 1.3 with forward secrecy only; no renegotiation, no compression; ALPN is `http/1.1` or `http/1.0`, and a
/// client that offers other protocols alone is refused in the handshake.
@safe final class TLSContext: @unchecked Sendable {
  // @unchecked: SSL_CTX is counted by OpenSSL and may be used by several threads once it is set up.
  let handle: OpaquePointer

  init(_ configuration: TLSServerConfiguration) throws(HTTPServerError) {
    ERR_clear_error()
    guard let handle = unsafe SSL_CTX_new(TLS_server_method()) else {
      throw HTTPServerError(code: .tls, message: "OpenSSL: \(Self.firstError())")
    }
    unsafe self.handle = handle
    _ = unsafe copenssl_set_min_version(handle, TLS1_2_VERSION)
    _ = unsafe SSL_CTX_set_options(
      handle,
      UInt64(copenssl_options_no_renegotiation | copenssl_options_no_compression | copenssl_options_server_preference))
    _ = unsafe copenssl_set_session_cache_off(handle)
    _ = unsafe SSL_CTX_set_num_tickets(handle, 1)
    unsafe copenssl_set_read_ahead(handle)
    _ = unsafe copenssl_set_mode(handle)
    guard
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
  }

  deinit { unsafe SSL_CTX_free(handle) }

  /// What OpenSSL says went wrong first, without paths of its own source: what it says after that only follows.
  private static func firstError() -> String {
    let code = ERR_peek_error()
    ERR_clear_error()
    if let text = unsafe ERR_reason_error_string(code) { return unsafe String(cString: text) }
    // A call of the operating system: its errno is the reason.
    return SystemError(code: CInt(truncatingIfNeeded: code & 0x7fff_ffff)).description
  }
}
