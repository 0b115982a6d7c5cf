import COpenSSL
import EventLoop
import Glibc

/// The TLS of one connection: OpenSSL's SSL over a non-blocking socket that somebody else owns and closes.
///
/// The socket is read and written here and not by OpenSSL's own BIO, which does not say what an edge-triggered loop must
/// know, whether a read took all that was there, and which raises SIGPIPE where the peer is gone.
@Loop
@safe final class TLSConnection {
  /// What became of a call.
  enum Outcome: Equatable {
    /// It is done; for reads and writes, with how many bytes.
    case done(Int)
    /// It goes on when the socket is readable.
    case needsBytes
    /// It goes on when the socket is writable.
    case needsRoom
    case failed(Transport.Failure)
  }

  /// What the calls of OpenSSL and of the loop tell each other about the socket.
  private struct Socket {
    let number: CInt
    /// Whether anything was ever read from it.
    var hasReceived = false
    /// How many bytes may still be read in this turn of the loop.
    var budget = 0
    /// The last read took everything that was there.
    var isDrained = false
    /// The last write did not fit.
    var isFull = false
  }

  /// So many bytes are read from the socket in a turn of the loop, in however many calls: OpenSSL goes on for as long as
  /// there is more, be it nothing but empty records or new keys (RFC 8446, section 4.6.3), and others wait.
  ///
  /// It is a little more than a whole record takes, with what TLS adds to it (RFC 8446, section 5.2).
  static let fairShare = 16_384 + 512

  /// So many are read where most of the last share was not for us.
  private static let smallShare = 2048

  private let handle: OpaquePointer
  private let socket: UnsafeMutablePointer<Socket>
  private var share = TLSConnection.fairShare
  /// When the turn began whose share is being read, nil before the first, and how many bytes of it were for us.
  private var turn: MonotonicTime?
  private var received = 0

  /// Begins as the server's side over `number`; nil for want of memory.
  init?(_ context: TLSContext, over number: CInt) {
    guard let handle = unsafe SSL_new(context.handle) else { return nil }
    guard let bio = unsafe BIO_new(Self.method) else {
      unsafe SSL_free(handle)
      return nil
    }
    unsafe socket = .allocate(capacity: 1)
    unsafe socket.initialize(to: Socket(number: number))
    unsafe BIO_set_data(bio, socket)
    unsafe BIO_set_init(bio, 1)
    unsafe SSL_set_bio(handle, bio, bio)  // SSL owns it from here on
    unsafe SSL_set_accept_state(handle)
    unsafe self.handle = handle
  }

  isolated deinit {
    unsafe SSL_free(handle)  // sends nothing: the socket may be closed already
    unsafe socket.deallocate()
  }

  /// Whether the socket's last read took all that was there, since this was last asked.
  func takeDrained() -> Bool {
    defer { unsafe socket.pointee.isDrained = false }
    return unsafe socket.pointee.isDrained
  }

  /// Whether a write found the socket full, since this was last asked.
  func takeFull() -> Bool {
    defer { unsafe socket.pointee.isFull = false }
    return unsafe socket.pointee.isFull
  }

  /// Whether the peer has sent anything yet.
  var hasReceived: Bool { unsafe socket.pointee.hasReceived }

  /// Whether bytes wait here that were read from the socket already: maybe a record, maybe part of one.
  var holdsBytes: Bool { unsafe SSL_has_pending(handle) == 1 }

  func handshake() -> Outcome {
    Self.forgetErrors()
    unsafe socket.pointee.budget = Self.fairShare
    return unsafe outcome(SSL_do_handshake(handle))
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> Outcome {
    Self.forgetErrors()
    if turn != Loop.now { beginShare() }
    let outcome = unsafe outcome(SSL_read(handle, room.baseAddress, CInt(clamping: room.count)))
    if case .done(let count) = outcome { received += count }
    return outcome
  }

  /// A share of nothing but new keys costs milliseconds, also with a byte of a request in it now and then.
  private func beginShare() {
    let taken = unsafe share - socket.pointee.budget
    if turn == nil || received * 2 >= taken {
      share = Self.fairShare
    } else if taken >= Self.smallShare {
      share = Self.smallShare
    }
    (turn, received) = (Loop.now, 0)
    unsafe socket.pointee.budget = share
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> Outcome {
    Self.forgetErrors()
    return unsafe outcome(SSL_write(handle, bytes.baseAddress, CInt(clamping: bytes.count)))
  }

  /// Tells the peer that nothing more comes, so that it can tell an end from a break.
  func endWriting() {
    Self.forgetErrors()
    _ = unsafe SSL_shutdown(handle)
  }

  /// Empties the thread's queue of errors: `SSL_get_error` would take what lies there for this call's. Mostly it is empty,
  /// and to empty it costs several times as much as to look.
  private static func forgetErrors() { if ERR_peek_error() != 0 { ERR_clear_error() } }

  private func outcome(_ result: CInt) -> Outcome {
    if result > 0 { return .done(Int(result)) }
    switch unsafe SSL_get_error(handle, result) {
    case SSL_ERROR_WANT_READ: return .needsBytes
    case SSL_ERROR_WANT_WRITE: return .needsRoom
    case SSL_ERROR_SSL:
      if copenssl_was_plain_http() == 1 { return .failed(.plainHTTP) }
      return .failed(copenssl_was_other_protocol() == 1 ? .otherProtocol : .tls)
    default: return .failed(.closed)
    }
  }

  // MARK: The socket under it

  /// One for the process, never freed. A sockets' method without an end-of-file control: the end of the connection
  /// without TLS's own goodbye is an end like another, because HTTP says itself where a message ends.
  private static let method: OpaquePointer? = {
    let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket in a loop")
    unsafe BIO_meth_set_read(method) { bio, room, count in
      unsafe TLSConnection.transfer(bio, retry: BIO_FLAGS_READ) { socket in
        let wanted = unsafe min(Int(count), socket.pointee.budget)
        guard wanted > 0 else {
          errno = EAGAIN
          return -1
        }
        let received = unsafe recv(socket.pointee.number, room, wanted, 0)
        unsafe socket.pointee.isDrained = received < wanted
        if received > 0 {
          unsafe socket.pointee.budget -= received
          unsafe socket.pointee.hasReceived = true
        }
        return received
      }
    }
    unsafe BIO_meth_set_write(method) { bio, bytes, count in
      unsafe TLSConnection.transfer(bio, retry: BIO_FLAGS_WRITE) { socket in
        let sent = unsafe send(socket.pointee.number, bytes, Int(count), CInt(MSG_NOSIGNAL))
        unsafe socket.pointee.isFull = sent < 0
        return sent
      }
    }
    unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
    return unsafe method
  }()

  private nonisolated static func transfer(
    _ bio: OpaquePointer?, retry: CInt, _ call: (UnsafeMutablePointer<Socket>) -> Int
  ) -> CInt {
    unsafe BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
    guard let socket = unsafe BIO_get_data(bio)?.assumingMemoryBound(to: Socket.self) else { return -1 }
    while true {
      let count = unsafe call(socket)
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { unsafe BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY) }
      return CInt(count)
    }
  }
}
