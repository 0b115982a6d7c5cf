import COpenSSL

/// A TLS session that a server let a client keep.
@safe public final class TLSSession: @unchecked Sendable {
  // @unchecked: SSL_SESSION is counted by OpenSSL, and not changed once it is made.
  let handle: OpaquePointer

  /// Takes it over.
  init(_ handle: OpaquePointer) { unsafe self.handle = handle }

  deinit { unsafe SSL_SESSION_free(handle) }
}
