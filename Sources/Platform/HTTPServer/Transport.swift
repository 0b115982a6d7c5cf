import EventLoop
import Glibc

/// A connected socket, with TLS or without: reads and writes that never block, in the loop.
@Loop
final class Transport {
  enum Failure: Error, Equatable {
    /// The peer closed or reset the connection.
    case closed
    /// Somebody interrupted the wait: a deadline passed, or the server ends.
    case interrupted
    /// The peer speaks something that is not TLS, or breaks its rules.
    case tls
    /// The peer speaks plain HTTP where TLS is expected.
    case plainHTTP
    /// The peer offers protocols of which none is spoken here.
    case otherProtocol
  }

  /// So many bytes go out before others get their turn, even to a peer that takes whatever we write.
  private static let fairShare = 262_144

  let descriptor: Descriptor
  private var tls: TLSConnection?
  /// OpenSSL may answer the next read without the socket.
  private var holdsBytes = false
  /// OpenSSL must write before it can read on.
  private var readNeedsRoom = false
  private var written = 0

  /// Takes the accepted socket over.
  init(_ accepted: ListeningSocket.Accepted) throws(SystemError) {
    descriptor = try Descriptor(owning: accepted.number)
    // Mostly a peer's first bytes come after its connection. The kernel reports those that are here already, too.
    descriptor.clearReadable()
  }

  isolated deinit { descriptor.close() }

  /// A step of the TLS handshake. True when it has come to its end; otherwise `untilReady` waits for the next step.
  ///
  /// To be called when the peer has sent something: before that there is no TLS, so that who connects and is silent
  /// costs a descriptor and little else.
  func handshake(_ context: () -> TLSContext) throws(Failure) -> Bool {
    if tls == nil { tls = TLSConnection(context(), over: descriptor.number) }
    guard let tls else { throw .closed }  // no memory
    let outcome = tls.handshake()
    note(tls)
    readNeedsRoom = outcome == .needsRoom
    switch outcome {
    case .done:
      // The peer's first request may have come in one piece with the end of its handshake.
      holdsBytes = tls.holdsBytes
      return true
    case .needsBytes, .needsRoom: return false
    case .failed(let failure): throw failure
    }
  }

  /// Whether the peer has sent anything of TLS yet.
  var hasBegunTLS: Bool { tls?.hasReceived ?? false }

  /// What the calls into OpenSSL learned about the socket, before anything else can happen to it.
  private func note(_ tls: TLSConnection) {
    if tls.takeDrained() { descriptor.clearReadable() }
    if tls.takeFull() { descriptor.clearWritable() }
  }

  // MARK: Reading

  /// Whether bytes of the peer are here of which nothing can be made yet: part of a record.
  var holdsPart: Bool { tls?.holdsBytes ?? false }

  /// Reads on in the header with which a proxy begins, and nothing of what is behind it. `beginning` is what was read of
  /// it before. To be called before anything else is read.
  func readProxyHeader(after beginning: inout [UInt8]) throws(Failure) -> ProxyHeader.Step {
    var room = [UInt8](repeating: 0, count: ProxyHeader.longest - beginning.count)
    let count = unsafe recv(descriptor.number, &room, room.count, CInt(MSG_PEEK))
    if count < 0, errno == EAGAIN || errno == EINTR {
      if errno == EAGAIN { descriptor.clearReadable() }
      return .incomplete
    }
    guard count > 0 else { throw .closed }
    let step = ProxyHeader.read(beginning + room[..<count])
    let taken = if case .complete(let header) = step { header.length - beginning.count } else { count }
    // What was looked at is there: now it is taken.
    guard unsafe recv(descriptor.number, &room, taken, 0) == taken else { throw .closed }
    beginning += room[..<taken]
    return step
  }

  /// Waits until `readAvailable`, or `handshake`, may go on.
  func untilReadable() async throws(Failure) {
    if descriptor.isInterrupted { throw .interrupted }
    if holdsBytes { return }
    let wake = readNeedsRoom ? await descriptor.untilWritable() : await descriptor.untilReadable()
    guard wake == .ready else { throw .interrupted }
  }

  /// Reads what is there into `room`, at most; 0 when nothing is there. Never waits.
  func readAvailable(_ room: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
    guard let tls else { return try unsafe readPlain(room) }
    let outcome = unsafe tls.read(into: room)
    note(tls)
    (holdsBytes, readNeedsRoom) = (false, false)
    switch outcome {
    case .done(let count):
      holdsBytes = tls.holdsBytes
      return count
    case .needsBytes: return 0
    case .needsRoom:
      readNeedsRoom = true
      return 0
    case .failed(let failure): throw failure
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

  // MARK: Writing

  /// Writes all of `bytes` from `offset` on, waiting for room where the peer is slow.
  func write(_ bytes: [UInt8], from offset: Int = 0) async throws(Failure) {
    var offset = offset
    while offset < bytes.count {
      if descriptor.isInterrupted { throw .interrupted }
      let count = try writeAvailable(bytes, from: offset)
      offset += count
      written += count
      if count == 0 {
        written = 0
        guard await descriptor.untilWritable() == .ready else { throw .interrupted }
      } else if written > Self.fairShare {
        written = 0
        await Loop.nextTurn()
      }
    }
  }

  /// Writes what the socket takes now, without waiting; 0 if it takes nothing.
  func writeAvailable(_ bytes: [UInt8], from offset: Int) throws(Failure) -> Int {
    let outcome = unsafe bytes.withUnsafeBytes { all in
      unsafe writeSome(UnsafeRawBufferPointer(rebasing: all[offset...]))
    }
    switch outcome {
    case .done(let count): return count
    // Without renegotiation, which is off, OpenSSL never has to read before it can write.
    case .needsBytes: throw .tls
    case .needsRoom: return 0
    case .failed(let failure): throw failure
    }
  }

  private func writeSome(_ bytes: UnsafeRawBufferPointer) -> TLSConnection.Outcome {
    if let tls {
      defer { note(tls) }
      return unsafe tls.write(bytes)
    }
    while true {
      let count = unsafe send(descriptor.number, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL))
      if count >= 0 { return .done(count) }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        descriptor.clearWritable()
        return .needsRoom
      default: return .failed(.closed)
      }
    }
  }

  /// Has the kernel end the connection where the peer does not acknowledge for so long what was written, or has no room
  /// for it: one whose machine is gone says nothing, and what fits into the kernel's buffer is never seen to be stuck.
  func giveUp(after time: Duration) {
    var milliseconds = CInt(clamping: max(1, time.wholeNanoseconds / 1_000_000))
    unsafe setsockopt(
      descriptor.number, CInt(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, socklen_t(MemoryLayout<CInt>.size))
  }

  // MARK: The end

  /// Tells the peer that nothing more comes.
  func endWriting() {
    tls?.endWriting()
    shutdown(descriptor.number, CInt(SHUT_WR))
  }

  /// Writes past TLS: the one answer to a peer that never spoke it. It fits into the socket of a new connection.
  func answerPlainHTTP() {
    _ = unsafe Self.plainAnswer.withUnsafeBytes { all in
      unsafe send(descriptor.number, all.baseAddress, all.count, CInt(MSG_NOSIGNAL))
    }
  }

  private static let plainAnswer = Array(
    ("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 29\r\nConnection: close\r\n\r\n"
      + "HTTPS is spoken on this port\n").utf8)

  /// Waits for bytes and drops them, without TLS; nil when the peer has closed or the wait is interrupted.
  func discard() async -> Int? {
    while await descriptor.untilReadable() == .ready {
      // tcp(7): with MSG_TRUNC the bytes are dropped, not copied.
      let count = recv(descriptor.number, nil, 65_536, CInt(MSG_TRUNC))
      if count > 0 {
        await Loop.nextTurn()
        return count
      }
      if count == 0 || errno != EAGAIN && errno != EINTR { return nil }
      if errno == EAGAIN { descriptor.clearReadable() }
    }
    return nil
  }
}
