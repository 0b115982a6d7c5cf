import EventLoop
import Glibc

/// The network between the ingress and one broker: it passes everything on, until it is told to cut it or slow it down.
///
/// What it holds back stands for what is still in the client's kernel: a client that resets its connection, as a producer does
/// however it ends, has it dropped there, and so here. While it is open it holds nothing back.
@Loop
final class BrokerDoor {
  /// What happens to what comes.
  enum State {
    /// It is passed on.
    case open
    /// It stays where it is, as when packets are dropped: nobody is told.
    case silent
    /// Connections are reset, and new ones too.
    case shut
    /// It is passed on late, and little at a time.
    case slow
  }

  /// Where clients connect.
  nonisolated let address: SocketAddress
  /// What happens to what comes from now on.
  var state = State.open {
    didSet { if state == .shut { for connection in connections.values { connection.close() } } }
  }
  /// Where the broker is.
  var broker: SocketAddress?

  private let listener: ListeningSocket
  private var connections: [Int: Connection] = [:]
  private var count = 0

  /// A door on a free port, with nothing behind it yet.
  init() throws {
    listener = try ListeningSocket(.loopback(port: 0))
    address = listener.address
    Task(executorPreference: Loop.executor) { [weak self, listener] in
      while let accepted = try await listener.accept() { await self?.admit(accepted) }
    }
  }

  isolated deinit { listener.close() }

  /// One connection, both ways.
  @Loop private final class Connection {
    let client: Descriptor
    let broker: Descriptor

    init(_ client: CInt, _ broker: CInt) throws {
      do { self.client = try Descriptor(owning: client) } catch {
        Glibc.close(broker)
        throw error
      }
      self.broker = try Descriptor(owning: broker)
    }

    /// Whether the client has reset it, and not only ended its side.
    var isReset: Bool {
      var error: CInt = 0
      var size = socklen_t(MemoryLayout<CInt>.size)
      return unsafe getsockopt(client.number, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0
    }

    func close() {
      client.close()
      broker.close()
    }
  }

  private func admit(_ accepted: ListeningSocket.Accepted) {
    guard state != .shut, let broker, let number = connected(to: broker) else { return accepted.close() }
    do {
      let connection = try Connection(accepted.number, number)
      count += 1
      connections[count] = connection
      start(connection, count)
    } catch {
      print("the network has no descriptors left: \(error)")
    }
  }

  private func start(_ connection: Connection, _ name: Int) {
    connection.client.onEnd { [weak self] in
      if self?.state != .open, connection.isReset { self?.end(name) }
    }
    for (source, target) in [(connection.client, connection.broker), (connection.broker, connection.client)] {
      Task(executorPreference: Loop.executor) { [weak self] in
        while await self?.passOn(source, target) == true {}
        await self?.end(name)
      }
    }
  }

  private func end(_ name: Int) { connections.removeValue(forKey: name)?.close() }

  /// Passes on what comes next. False at the end.
  private func passOn(_ source: Descriptor, _ target: Descriptor) async -> Bool {
    guard source.isOpen else { return false }
    var room = [UInt8](repeating: 0, count: state == .slow ? 8192 : 65_536)
    let count = unsafe recv(source.number, &room, room.count, 0)
    if count < 0, errno == EAGAIN {
      source.clearReadable()
      return await source.untilReadable() == .ready
    }
    guard count > 0 else { return false }
    if state == .slow { await pause(for: .milliseconds(100)) }
    while state == .silent { await pause(for: .milliseconds(10)) }
    var rest = room[..<count]
    while !rest.isEmpty {
      guard target.isOpen else { return false }
      let sent = unsafe rest.withUnsafeBytes { unsafe send(target.number, $0.baseAddress, $0.count, 0) }
      if sent >= 0 {
        rest.removeFirst(sent)
      } else if errno == EAGAIN {
        target.clearWritable()
        guard await target.untilWritable() == .ready else { return false }
      } else {
        return false
      }
    }
    return true
  }

  /// The delay that the network is to have: the fault itself.
  private func pause(for duration: Duration) async {
    do { try await Loop.sleep(for: duration) } catch { state = .open }  // the tests end
  }

  private func connected(to address: SocketAddress) -> CInt? {
    let number = socket(
      AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var on: CInt = 1
    unsafe setsockopt(number, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
    // A frozen broker takes no more than its queue holds: who waits there waits here too.
    let result = unsafe address.withSystemAddress { unsafe connect(number, $0, $1) }
    if result == 0 || errno == EINPROGRESS { return number }
    close(number)
    return nil
  }
}
