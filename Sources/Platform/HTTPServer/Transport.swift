import COpenSSL
import EventLoop
import Glibc

/// A connected socket, with TLS or without: reads and writes that never block, in the loop.
@Loop
@safe final class Transport {
  enum Failure: Error, Equatable {
    /// The peer closed or reset the connection.
    case closed
    /// Somebody interrupted the wait: a deadline passed, or the server ends.
    case interrupted
    /// The peer speaks something that is not TLS, or breaks its rules.
    case tls
    /// The peer speaks plain HTTP where TLS is expected.
    case plainHTTP
  }

  let descriptor: Descriptor
  private let tls: OpaquePointer?
  /// Bytes that OpenSSL had read when it was last empty and began to wait.
  private var bytesBefore: UInt64 = 0

  /// Takes the accepted socket over.
  init(_ accepted: ListeningSocket.Accepted, context: TLSContext?) throws(SystemError) {
    descriptor = try Descriptor(owning: accepted.number)
    guard let context else {
      unsafe tls = nil
      return
    }
    guard let tls = unsafe SSL_new(context.handle), unsafe SSL_set_fd(tls, accepted.number) == 1 else {
      descriptor.close()
      throw SystemError(code: ENOMEM)
    }
    unsafe SSL_set_accept_state(tls)
    unsafe self.tls = tls
  }

  isolated deinit {
    if let tls = unsafe tls { unsafe SSL_free(tls) }
    descriptor.close()
  }

  /// The TLS handshake; nothing on a plain socket.
  func handshake() async throws(Failure) {
    guard let tls = unsafe tls else { return }
    while true {
      ERR_clear_error()
      let result = unsafe SSL_do_handshake(tls)
      if result == 1 { return }
      try await wait(unsafe SSL_get_error(tls, result))
    }
  }

  /// Reads what is there into `room`, at most; 0 when nothing is there. Never waits.
  func readAvailable(_ room: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
    guard let tls = unsafe tls else { return try unsafe readPlain(room) }
    ERR_clear_error()
    let count = unsafe SSL_read(tls, room.baseAddress, CInt(clamping: room.count))
    if count > 0 {
      unsafe noteDrained(tls)
      return Int(count)
    }
    switch unsafe SSL_get_error(tls, count) {
    case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE:
      descriptor.clearReadable()
      return 0
    case SSL_ERROR_SSL: throw .tls
    default: throw .closed
    }
  }

  private func readPlain(_ room: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
    while true {
      let count = unsafe recv(descriptor.number, room.baseAddress, room.count, 0)
      if count > 0 {
        if count < room.count { descriptor.clearReadable() }
        return count
      }
      if count == 0 { throw .closed }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        descriptor.clearReadable()
        return 0
      default: throw .closed
      }
    }
  }

  /// Saves the read that would only say `EAGAIN`: if OpenSSL holds nothing more, and took less from the socket since
  /// the last edge than one of its reads asks for (a whole record), then the socket was empty.
  private func noteDrained(_ tls: OpaquePointer) {
    let bytes = unsafe copenssl_bytes_read(tls)
    if bytes &- bytesBefore < 16_384, unsafe SSL_has_pending(tls) == 0 { descriptor.clearReadable() }
  }

  /// Waits until `readAvailable` may find something.
  func untilReadable() async throws(Failure) {
    guard await descriptor.untilReadable() == .ready else { throw .interrupted }
    // With part of a record in its buffer OpenSSL asks for less: then the count goes on from where it was.
    if let tls = unsafe tls, unsafe SSL_has_pending(tls) == 0 { bytesBefore = unsafe copenssl_bytes_read(tls) }
  }

  /// Writes all of `bytes`, waiting for room where the peer is slow.
  func write(_ bytes: [UInt8]) async throws(Failure) {
    var offset = 0
    while offset < bytes.count {
      let written = try writeAvailable(bytes, from: offset)
      offset += written
      if written == 0 { guard await descriptor.untilWritable() == .ready else { throw .interrupted } }
    }
  }

  /// Writes what the socket takes now, without waiting; 0 if it takes nothing.
  func writeAvailable(_ bytes: [UInt8], from offset: Int) throws(Failure) -> Int {
    guard offset < bytes.count else { return 0 }
    var result = 0
    var failure: Failure?
    unsafe bytes.withUnsafeBytes { all in
      let rest = unsafe UnsafeRawBufferPointer(rebasing: all[offset...])
      do throws(Failure) { result = try unsafe writeSome(rest) } catch { failure = error }
    }
    if let failure { throw failure }
    return result
  }

  private func writeSome(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Int {
    guard let tls = unsafe tls else {
      while true {
        let count = unsafe send(descriptor.number, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL))
        if count >= 0 { return count }
        switch errno {
        case EINTR: continue
        case EAGAIN:
          descriptor.clearWritable()
          return 0
        default: throw .closed
        }
      }
    }
    ERR_clear_error()
    let count = unsafe SSL_write(tls, bytes.baseAddress, CInt(clamping: bytes.count))
    if count > 0 { return Int(count) }
    switch unsafe SSL_get_error(tls, count) {
    case SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_READ:
      descriptor.clearWritable()
      return 0
    case SSL_ERROR_SSL: throw .tls
    default: throw .closed
    }
  }

  private func wait(_ error: CInt) async throws(Failure) {
    switch error {
    case SSL_ERROR_WANT_READ:
      descriptor.clearReadable()
      guard await descriptor.untilReadable() == .ready else { throw .interrupted }
    case SSL_ERROR_WANT_WRITE:
      descriptor.clearWritable()
      guard await descriptor.untilWritable() == .ready else { throw .interrupted }
    case SSL_ERROR_SSL:
      throw copenssl_was_plain_http() == 1 ? .plainHTTP : .tls
    default: throw .closed
    }
  }

  /// Tells the peer that nothing more comes.
  func endWriting() {
    if let tls = unsafe tls { _ = unsafe SSL_shutdown(tls) }
    shutdown(descriptor.number, CInt(SHUT_WR))
  }

  /// Writes past TLS: for the one answer to a peer that never spoke it.
  func writePlain(_ bytes: [UInt8]) {
    _ = unsafe bytes.withUnsafeBytes { all in
      unsafe send(descriptor.number, all.baseAddress, all.count, CInt(MSG_NOSIGNAL))
    }
  }

  /// Reads and forgets, without TLS, until the peer closes, `limit` bytes have come, or the wait is interrupted: a
  /// close with unread bytes would reset the connection and could take our last answer from the peer.
  func discard(upTo limit: Int) async {
    var scratch = [UInt8](repeating: 0, count: 4096)
    var left = limit
    while left > 0 {
      let count = unsafe recv(descriptor.number, &scratch, scratch.count, 0)
      if count > 0 {
        left -= count
        continue
      }
      guard count < 0, errno == EAGAIN || errno == EINTR else { return }
      descriptor.clearReadable()
      guard await descriptor.untilReadable() == .ready else { return }
    }
  }
}
