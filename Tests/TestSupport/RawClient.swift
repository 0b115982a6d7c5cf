public import EventLoop
import Glibc

/// The other side of a connection to loopback, byte for byte: it sends what a test tells it to, well-formed or not, and
/// reads until what the test waits for has come. Whatever else happens is an error that shows what came instead.
@Loop
public final class RawClient: ClientStream {
  /// The address and port from which it is connected.
  public nonisolated let address: SocketAddress
  /// What has come so far and was not yet taken.
  public var received: [UInt8] = []
  private let descriptor: Descriptor

  /// Connects. A small `receiveBuffer` makes a slow reader.
  public init(_ server: SocketAddress, from source: SocketAddress? = nil, receiveBuffer: CInt? = nil) throws {
    let number = socket(
      server.isIPv4 ? AF_INET : AF_INET6, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if var size = receiveBuffer {
      unsafe setsockopt(number, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
    }
    if let source { _ = unsafe source.withSystemAddress { unsafe bind(number, $0, $1) } }
    guard unsafe server.withSystemAddress({ unsafe connect(number, $0, $1) }) == 0 else {
      let error = SystemError.current
      Glibc.close(number)
      throw ClientFailure(description: "cannot connect to \(server): \(error)")
    }
    _ = fcntl(number, F_SETFL, O_NONBLOCK)
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    _ = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(number, $0, &length) }
    }
    guard let address = SocketAddress(storage) else { throw ClientFailure(description: "no address of its own") }
    self.address = address
    descriptor = try Descriptor(owning: number)
  }

  isolated deinit { descriptor.close() }

  /// Sends all of it, waiting for room.
  public func send(_ bytes: some Sequence<UInt8>) async throws {
    let bytes = Array(bytes)
    var offset = 0
    while offset < bytes.count {
      let rest = bytes[offset...]
      let count = unsafe rest.withUnsafeBytes {
        unsafe Glibc.send(descriptor.number, $0.baseAddress, $0.count, noSignal)
      }
      if count >= 0 {
        offset += count
      } else if errno == EAGAIN {
        descriptor.clearWritable()
        guard await descriptor.untilWritable() == .ready else {
          throw ClientFailure(description: "closed while sending")
        }
      } else {
        throw ClientFailure(description: "sent \(offset) of \(bytes.count) bytes, then: \(SystemError.current)")
      }
    }
  }

  /// Sends all of it before the loop turns, and throws where there is no room for all of it.
  public func sendAtOnce(_ bytes: [UInt8]) throws {
    let count = unsafe Glibc.send(descriptor.number, bytes, bytes.count, noSignal)
    guard count == bytes.count else {
      throw ClientFailure(description: "sent \(count) of \(bytes.count) bytes: \(SystemError.current)")
    }
  }

  private let noSignal = CInt(MSG_NOSIGNAL)

  /// Returns once the peer's kernel has all that was sent. The loop does not turn meanwhile, so that nobody on it has looked.
  public func settle() {
    var unacknowledged: CInt = 1
    while unsafe ioctl(descriptor.number, UInt(TIOCOUTQ), &unacknowledged) == 0, unacknowledged > 0 { sched_yield() }
  }

  /// Waits until at least one more byte has come. False at the end of what the peer sends.
  public func receive() async throws -> Bool {
    var room = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe recv(descriptor.number, &room, room.count, 0)
      if count > 0 {
        received.append(contentsOf: room[..<count])
        return true
      }
      if count == 0 { return false }
      guard errno == EAGAIN else { throw ClientFailure(description: "\(SystemError.current), after \(summary)") }
      descriptor.clearReadable()
      guard await descriptor.untilReadable() == .ready else { throw ClientFailure(description: "closed while reading") }
    }
  }

  /// Says that it sends nothing more, but goes on reading.
  public func endWriting() { shutdown(descriptor.number, CInt(SHUT_WR)) }

  /// Closes in good order.
  public func close() { descriptor.close() }

  /// Closes with a reset: the peer's next read fails.
  public func reset() {
    var now = linger(l_onoff: 1, l_linger: 0)
    unsafe setsockopt(descriptor.number, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    descriptor.close()
  }
}
