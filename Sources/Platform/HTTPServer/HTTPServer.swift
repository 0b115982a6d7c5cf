public import EventLoop

/// An HTTP/1.1 server over TLS or plain sockets, in the loop.
///
/// It reads what RFC 9112 lets a strict server read and refuses the rest, bounds everything that a peer can make
/// large or slow, and calls one async function for each request.
@Loop
public final class HTTPServer {
  /// From a request to its answer. Runs on the loop; requests of one connection are answered one after another.
  public typealias Handler = @Loop @Sendable (HTTPRequest) async -> HTTPResponse

  /// Where it listens, with the real port.
  public nonisolated let address: SocketAddress
  /// What happened so far.
  public internal(set) var statistics = HTTPServerStatistics()

  let configuration: HTTPServerConfiguration
  let handler: Handler
  private(set) var tls: TLSContext?
  private let socket: ListeningSocket
  private var connections: [ObjectIdentifier: HTTPConnection] = [:]
  private var perAddress: [SocketAddress.InlineAddress: Int] = [:]
  private var isDraining = false
  private let room = Gate()
  private let empty = Gate()

  /// Reads the certificate and binds the address: what is wrong shows here, before anything is promised.
  public init(_ configuration: HTTPServerConfiguration, handler: @escaping Handler) throws(HTTPServerError) {
    self.configuration = configuration
    self.handler = handler
    if let tls = configuration.tls { self.tls = try TLSContext(tls) }
    do throws(SystemError) {
      socket = try ListeningSocket(configuration.address, sharingPort: configuration.sharesPort)
    } catch {
      throw HTTPServerError(code: .listen, message: "cannot listen on \(configuration.address): \(error)")
    }
    address = socket.address
  }

  /// How many connections are open.
  public var connectionCount: Int { connections.count }

  /// Serves until `drain` has ended.
  public func run() async {
    await withDiscardingTaskGroup { group in
      while let accepted = await next() {
        guard let connection = admit(accepted) else { continue }
        group.addTask(executorPreference: Loop.executor) { [self] in await serve(connection) }
      }
    }
  }

  private func serve(_ connection: HTTPConnection) async {
    await connection.run()
    remove(connection)
  }

  /// Stops accepting, lets every request that was begun be answered, and closes what is still open after `patience`.
  /// Returns when no connection is left.
  public func drain(within patience: Duration) async {
    isDraining = true
    socket.close()
    room.open()
    for connection in connections.values { connection.drain() }
    let deadline = Deadline()
    deadline.onPass { [self] in for connection in connections.values { connection.abandon() } }
    deadline.set(.now + patience)
    while !connections.isEmpty {
      empty.close()
      await empty.pass()
    }
    deadline.invalidate()
  }

  /// The next connection; nil once the server drains.
  private func next() async -> ListeningSocket.Accepted? {
    while !isDraining {
      if connections.count >= configuration.limits.connections {
        statistics.fullTimes += 1
        room.close()
        await room.pass()
        continue
      }
      do throws(SystemError) {
        return try await socket.accept()
      } catch {
        // No descriptors or no memory: only time helps, and the kernel's queue holds whoever knocks.
        statistics.acceptFailures += 1
        room.close()
        let pause = Deadline()
        pause.onPass { [room] in room.open() }
        pause.set(.now + .milliseconds(100))
        await room.pass()
        pause.invalidate()
      }
    }
    return nil
  }

  private func admit(_ accepted: ListeningSocket.Accepted) -> HTTPConnection? {
    statistics.accepted += 1
    let count = perAddress[accepted.peer.bytes, default: 0]
    guard count < configuration.limits.connectionsPerAddress else {
      statistics.refusedPerAddress += 1
      accepted.close()
      return nil
    }
    do throws(SystemError) {
      let connection = try HTTPConnection(accepted, server: self)
      perAddress[accepted.peer.bytes] = count + 1
      connections[ObjectIdentifier(connection)] = connection
      return connection
    } catch {
      statistics.acceptFailures += 1
      return nil
    }
  }

  private func remove(_ connection: HTTPConnection) {
    connections[ObjectIdentifier(connection)] = nil
    let address = connection.peer.bytes
    let count = perAddress[address, default: 1] - 1
    perAddress[address] = count > 0 ? count : nil
    room.open()
    if connections.isEmpty { empty.open() }
  }
}

/// What one task waits for until others let it pass.
@Loop
private final class Gate {
  private var isOpen = true
  private var waiter: CheckedContinuation<Void, Never>?

  nonisolated init() {}

  func close() { isOpen = false }

  func open() {
    isOpen = true
    waiter?.resume()
    waiter = nil
  }

  func pass() async {
    if isOpen { return }
    await withCheckedContinuation { continuation in
      // Again: a task that does not prefer the loop's executor gives way between the check above and this place.
      if isOpen { return continuation.resume() }
      waiter = continuation
    }
  }
}
