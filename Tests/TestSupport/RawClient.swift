public import EventLoop
import Glibc

/// The other side of a connection to loopback, byte for byte: it sends what a test tells it to, well-formed or not, and
/// reads until what the test waits for has come. Whatever else happens is an error that shows what came instead.
@Loop
public final class RawClient {
  /// What a test waited for did not come.
  public struct Failure: Error, CustomStringConvertible {
    /// What happened instead.
    public let description: String
  }

  /// The address and port from which it is connected.
  public nonisolated let address: SocketAddress
  /// What has come so far and was not yet taken.
  public private(set) var received: [UInt8] = []
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
      throw Failure(description: "cannot connect to \(server): \(error)")
    }
    _ = fcntl(number, F_SETFL, O_NONBLOCK)
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    _ = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(number, $0, &length) }
    }
    guard let address = SocketAddress(storage) else { throw Failure(description: "no address of its own") }
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
        guard await descriptor.untilWritable() == .ready else { throw Failure(description: "closed while sending") }
      } else {
        throw Failure(description: "sent \(offset) of \(bytes.count) bytes, then: \(SystemError.current)")
      }
    }
  }

  private let noSignal = CInt(MSG_NOSIGNAL)

  /// Sends text as it is; line ends are the caller's.
  public func send(_ text: String) async throws { try await send(text.utf8) }

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
      guard errno == EAGAIN else { throw Failure(description: "\(SystemError.current), after \(summary)") }
      descriptor.clearReadable()
      guard await descriptor.untilReadable() == .ready else { throw Failure(description: "closed while reading") }
    }
  }

  /// Reads until `isEnough` says so and takes what has come. An end before that is a failure.
  @discardableResult
  public func read(until isEnough: ([UInt8]) -> Bool) async throws -> [UInt8] {
    while !isEnough(received) {
      guard try await receive() else { throw Failure(description: "the peer closed after \(summary)") }
    }
    return take(received.count)
  }

  /// Reads until the peer has ended its side, and takes what has come as text.
  @discardableResult
  public func readToEnd() async throws -> String {
    while try await receive() {}
    return String(decoding: take(received.count), as: UTF8.self)
  }

  /// Takes the first `count` of the bytes that have come.
  public func take(_ count: Int) -> [UInt8] {
    defer { received.removeFirst(count) }
    return Array(received[..<count])
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

  private var summary: String { "\(received.count) bytes: \(String(decoding: received.prefix(500), as: UTF8.self))" }
}
