import CLinux
import Glibc

/// A TCP socket that accepts connections.
@Loop
public final class ListeningSocket {
  /// A connection as accept(2) gave it: non-blocking, closed by whoever takes it.
  public struct Accepted: Sendable {
    /// The descriptor, owned by the receiver.
    public let number: CInt
    /// Who connected.
    public let peer: SocketAddress

    /// Closes a connection that nobody wants.
    public func close() { Glibc.close(number) }
  }

  /// Where it listens; the port is the real one even where 0 was asked for.
  public nonisolated let address: SocketAddress
  private let descriptor: Descriptor
  private var burst = 0
  private var isEnding = false
  /// Descriptors that stand for nothing: they are given up for connections where the process has no others left.
  private var spares: [CInt] = []
  private let spareCount: Int

  private static let fairShare = 16

  /// Binds and listens. `sharingPort` lets several processes listen on one port (SO_REUSEPORT); as many connections as
  /// there are `spares` are accepted though the process has no descriptors left.
  public init(
    _ wanted: SocketAddress, backlog: CInt = 1024, sharingPort: Bool = false, spares: Int = 0
  ) throws(SystemError) {
    spareCount = spares
    let number = socket(
      wanted.isIPv4 ? AF_INET : AF_INET6, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue),
      0)
    guard number >= 0 else { throw .current }
    Self.set(number, SOL_SOCKET, SO_REUSEADDR, 1)
    if sharingPort { Self.set(number, SOL_SOCKET, SO_REUSEPORT, 1) }
    // Accepted sockets inherit it: answers are small and leave at once.
    Self.set(number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
    let bound = unsafe wanted.withSystemAddress { address, length in unsafe bind(number, address, length) }
    guard bound == 0, listen(number, backlog) == 0, let address = Self.localAddress(number) else {
      let error = SystemError.current
      Glibc.close(number)
      throw error
    }
    self.address = address
    descriptor = try Descriptor(owning: number)
    refillSpares()
  }

  /// Takes back the spare descriptors that were given up, as far as the system has any: to be called when a connection
  /// has ended.
  public func refillSpares() {
    while spares.count < spareCount, descriptor.isOpen {
      let spare = clinux_eventfd()
      if spare < 0 { return }
      spares.append(spare)
    }
  }

  private func releaseSpares() {
    for spare in spares { Glibc.close(spare) }
    spares = []
  }

  /// The next connection; nil after `close`. Throws when the system refuses one: out of descriptors, mostly; the
  /// caller waits a little before it asks again.
  public func accept() async throws(SystemError) -> Accepted? {
    while descriptor.isOpen {
      if burst == Self.fairShare {
        // A flood of connections must not keep the loop from those that are being served.
        burst = 0
        await Loop.nextTurn()
        continue
      }
      burst += 1
      var storage = sockaddr_storage()
      let number = unsafe clinux_accept(descriptor.number, &storage)
      if number >= 0 {
        guard let peer = SocketAddress(storage) else {
          Glibc.close(number)
          continue
        }
        return Accepted(number: number, peer: peer)
      }
      switch errno {
      case EAGAIN:
        burst = 0
        if isEnding {
          close()
          return nil
        }
        descriptor.clearReadable()
        guard await descriptor.untilReadable() == .ready else { return nil }
      case EINTR, ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH:
        continue  // a connection that died before it was accepted: accept(2) says to try again
      case EMFILE, ENFILE:
        let error = SystemError.current
        guard let spare = spares.popLast() else { throw error }
        Glibc.close(spare)
      default:
        throw .current
      }
    }
    return nil
  }

  /// Suspends until a connection waits to be accepted. False after `close`, or where it is to close when empty.
  public func untilSomebodyWaits() async -> Bool {
    while descriptor.isOpen, !isEnding {
      var query = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
      if unsafe poll(&query, 1, 0) > 0 { return true }
      descriptor.clearReadable()
      guard await descriptor.untilReadable() == .ready else { return false }
    }
    return false
  }

  /// Takes part in no new connection any more, so that those go to others who share the port; who is in the middle of
  /// connecting can still come to the end of it.
  ///
  /// To close at once would reset whoever stands in this socket's queue, or is on the way into it: the kernel does not
  /// hand them on to others (unless `net.ipv4.tcp_migrate_req` says so). So first this, then, when everybody had the time
  /// to connect, `closeWhenEmpty`. The kernel still chooses this socket for its share of new connections; they find
  /// nobody, ask again after a second, as TCP does, and reach another by then.
  ///
  /// Throws where the system does not let a socket have a filter, as some sandboxes do not: then the few that connect
  /// between now and the end are reset.
  public func leaveNewcomersToOthers() throws(SystemError) {
    guard descriptor.isOpen else { return }
    guard clinux_ignore_syn(descriptor.number) == 0 else { throw .current }
  }

  /// Lets `accept` take what stands in the queue already; then it closes and returns nil.
  public func closeWhenEmpty() {
    isEnding = true
    descriptor.wakeReader()
  }

  /// Stops listening: `accept` returns nil, and the system refuses new connections.
  public func close() {
    descriptor.close()
    releaseSpares()
  }

  isolated deinit { close() }

  private nonisolated static func set(_ number: CInt, _ level: CInt, _ option: CInt, _ value: CInt) {
    var value = value
    unsafe setsockopt(number, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
  }

  private nonisolated static func localAddress(_ number: CInt) -> SocketAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = unsafe withUnsafeMutableBytes(of: &storage) { raw in
      guard let base = raw.baseAddress else { return CInt(-1) }
      return unsafe getsockname(number, base.assumingMemoryBound(to: sockaddr.self), &length)
    }
    return result == 0 ? SocketAddress(storage) : nil
  }
}
