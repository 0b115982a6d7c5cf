import COpenSSL
public import EventLoop

/// A TLS client whose records a test can cut into pieces: OpenSSL encrypts in memory, and a `RawClient` sends what the
/// test gives it. It believes every server.
@Loop
@safe public final class TLSClient: ClientStream {
  /// The one version that it speaks.
  public enum Version: Sendable {
    case tls12, tls13
  }

  /// The connection under it.
  public let raw: RawClient
  /// What was decrypted so far and not yet taken.
  public var received: [UInt8] = []
  /// Whether the server said goodbye before it closed (close_notify): an end without it may be a break.
  public private(set) var hasEnded = false
  private let handle: OpaquePointer

  /// Connects. `protocols` are offered by ALPN, unless there are none; `session` is to go on.
  public init(
    _ server: SocketAddress, from source: SocketAddress? = nil, protocols: [String] = [], version: Version = .tls13,
    resuming session: TLSSession? = nil
  ) throws {
    raw = try RawClient(server, from: source)
    guard let context = unsafe SSL_CTX_new(TLS_client_method()), let handle = unsafe SSL_new(context) else {
      throw ClientFailure(description: "no memory for TLS")
    }
    unsafe SSL_CTX_free(context)
    unsafe self.handle = handle
    _ = unsafe copenssl_set_versions(handle, version == .tls12 ? TLS1_2_VERSION : TLS1_3_VERSION)
    unsafe SSL_set_bio(handle, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()))
    unsafe SSL_set_connect_state(handle)
    let offer = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    if !offer.isEmpty { _ = unsafe SSL_set_alpn_protos(handle, offer, CUnsignedInt(offer.count)) }
    if let session { _ = unsafe SSL_set_session(handle, session.handle) }
  }

  isolated deinit { unsafe SSL_free(handle) }

  /// What was agreed on by ALPN.
  public var chosenProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var count: CUnsignedInt = 0
    unsafe SSL_get0_alpn_selected(handle, &name, &count)
    guard let name = unsafe name else { return nil }
    return unsafe String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
  }

  /// The session, to be taken up by another client: TLS 1.3 sends it with the first answer.
  public var session: TLSSession? { unsafe SSL_get1_session(handle).map { unsafe TLSSession($0) } }

  /// Whether this is a session that goes on.
  public var isResumed: Bool { unsafe SSL_session_reused(handle) == 1 }

  /// The server's certificate in PEM.
  public var certificatePEM: String {
    guard let certificate = unsafe SSL_get1_peer_certificate(handle) else { return "" }
    defer { unsafe X509_free(certificate) }
    guard let memory = unsafe BIO_new(BIO_s_mem()) else { return "" }
    defer { unsafe BIO_free(memory) }
    unsafe PEM_write_bio_X509(memory, certificate)
    var room = [UInt8](repeating: 0, count: 16_384)
    let count = unsafe BIO_read(memory, &room, CInt(room.count))
    return String(decoding: room[..<Int(count)], as: UTF8.self)
  }

  /// Asks for another handshake on the same connection, which only TLS 1.2 knows. Returns OpenSSL's word for the answer.
  public func renegotiate() async throws -> String {
    unsafe SSL_renegotiate(handle)
    do {
      try await handshake()
      return "agreed"
    } catch let failure as ClientFailure {
      return failure.description
    }
  }

  /// Tells the server that other keys are used from here on (TLS 1.3), and sends nothing with them.
  public func updateKeys() -> [UInt8] {
    unsafe SSL_key_update(handle, SSL_KEY_UPDATE_NOT_REQUESTED)
    _ = unsafe SSL_do_handshake(handle)
    return flight()
  }

  /// What a client sends first, and nobody has sent yet.
  public func firstFlight() -> [UInt8] {
    _ = unsafe SSL_do_handshake(handle)
    return flight()
  }

  /// Shakes hands. The last flight is left to the caller, to be sent with whatever follows it.
  public func handshakeButTheLastFlight() async throws -> [UInt8] {
    while true {
      ERR_clear_error()
      let result = unsafe SSL_do_handshake(handle)
      if result == 1 { return flight() }
      guard unsafe SSL_get_error(handle, result) == SSL_ERROR_WANT_READ else { throw failure("the handshake failed") }
      try await raw.send(flight())
      guard try await raw.receive() else { throw ClientFailure(description: "the server closed in the handshake") }
      feed()
    }
  }

  /// Shakes hands.
  public func handshake() async throws { try await raw.send(try await handshakeButTheLastFlight()) }

  /// The record that carries the bytes, to be sent by `raw` in whatever pieces.
  public func seal(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    let bytes = Array(bytes)
    ERR_clear_error()
    _ = unsafe SSL_write(handle, bytes, CInt(bytes.count))
    return flight()
  }

  /// The record that carries the text.
  public func seal(_ text: String) -> [UInt8] { seal(text.utf8) }

  /// Sends all of it in one record, or as many as it takes.
  public func send(_ bytes: some Sequence<UInt8>) async throws { try await raw.send(seal(bytes)) }

  /// Waits until at least one more byte has come. False at the end of what the server sends.
  public func receive() async throws -> Bool {
    var room = [UInt8](repeating: 0, count: 16_384)
    while true {
      ERR_clear_error()
      let count = unsafe SSL_read(handle, &room, CInt(room.count))
      if count > 0 {
        received.append(contentsOf: room[..<Int(count)])
        return true
      }
      switch unsafe SSL_get_error(handle, count) {
      case SSL_ERROR_ZERO_RETURN: hasEnded = true
      case SSL_ERROR_WANT_READ: break
      default: throw failure("reading failed")
      }
      guard try await raw.receive() else { return false }
      feed()
    }
  }

  /// Says goodbye in TLS.
  public func endWriting() async throws {
    _ = unsafe SSL_shutdown(handle)
    try await raw.send(flight())
  }

  private func feed() {
    let bytes = raw.take(raw.received.count)
    _ = unsafe BIO_write(SSL_get_rbio(handle), bytes, CInt(bytes.count))
  }

  private func flight() -> [UInt8] {
    var bytes: [UInt8] = []
    var room = [UInt8](repeating: 0, count: 16_384)
    while case let count = unsafe BIO_read(SSL_get_wbio(handle), &room, CInt(room.count)), count > 0 {
      bytes.append(contentsOf: room[..<Int(count)])
    }
    return bytes
  }

  private func failure(_ what: String) -> ClientFailure {
    let reason = unsafe ERR_reason_error_string(ERR_peek_last_error())
    return unsafe ClientFailure(description: "\(what): \(reason.map { unsafe String(cString: $0) } ?? "?")")
  }
}
