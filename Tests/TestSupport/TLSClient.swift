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

  /// Connects. `protocols` are offered by ALPN, unless there are none.
  public init(_ server: SocketAddress, protocols: [String] = [], version: Version = .tls13) throws {
    raw = try RawClient(server)
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
