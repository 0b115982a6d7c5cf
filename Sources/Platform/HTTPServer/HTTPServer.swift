public import EventLoop

/// An HTTP/1.1 server over TLS or plain sockets, in the loop.
///
/// It reads what RFC 9112 lets a strict server read and refuses the rest, bounds everything that a peer can make
/// large or slow, and calls one async function for each request.
@Loop
public final class HTTPServer {
  /// From a request to its answer. Runs on the loop; requests of one connection are answered one after another. Its task
  /// is cancelled when the request has had its time, or the server its patience: then no answer is sent.
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
  private var perNetwork: [SocketAddress.InlineAddress: Int] = [:]
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

  /// Serves until `drain` has ended. If its task is cancelled, it ends at once: connections are closed, and the tasks of
  /// handlers that still run are cancelled.
  public func run() async {
    await withTaskCancellationHandler {
      await withDiscardingTaskGroup { group in
        while let accepted = await next() {
          guard let connection = admit(accepted) else { continue }
          group.addTask(executorPreference: Loop.executor) { [self] in await serve(connection) }
        }
      }
    } onCancel: {
      Task { @Loop in await drain(within: .zero) }
    }
  }

  private func serve(_ connection: HTTPConnection) async {
    await connection.run()
    remove(connection)
  }

  /// Stops accepting and lets every request that was begun be answered. After `patience` it closes what is still open
  /// and cancels the tasks of handlers that still run.
  ///
  /// Returns when no connection is left: a handler must heed its cancellation. A second call shortens the patience.
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
    let count = perNetwork[accepted.peer.network, default: 0]
    guard !isDraining, count < configuration.limits.connectionsPerAddress else {
      if !isDraining { statistics.refusedPerAddress += 1 }
      accepted.close()
      return nil
    }
    do throws(SystemError) {
      let connection = try HTTPConnection(accepted, server: self)
      perNetwork[accepted.peer.network] = count + 1
      connections[ObjectIdentifier(connection)] = connection
      return connection
    } catch {
      statistics.acceptFailures += 1
      return nil
    }
  }

  private func remove(_ connection: HTTPConnection) {
    connections[ObjectIdentifier(connection)] = nil
    let network = connection.peer.network
    let count = perNetwork[network, default: 1] - 1
    perNetwork[network] = count > 0 ? count : nil
    room.open()
    if connections.isEmpty { empty.open() }
  }
}

extension SocketAddress {
  /// What counts as one address: of IPv6, whoever has one has the 64 bits behind it too.
  fileprivate var network: InlineAddress { isIPv4 ? bytes : InlineAddress(high: bytes.high, low: 0) }
}

/// What tasks wait for until another lets them pass.
@Loop
private final class Gate {
  private var isOpen = true
  private var waiting: [CheckedContinuation<Void, Never>] = []

  nonisolated init() {}

  func close() { isOpen = false }

  func open() {
    isOpen = true
    for continuation in waiting { continuation.resume() }
    waiting.removeAll(keepingCapacity: true)
  }

  func pass() async {
    if isOpen { return }
    await withCheckedContinuation { continuation in
      // Again: a task that does not prefer the loop's executor gives way between the check above and this place.
      if isOpen { return continuation.resume() }
      waiting.append(continuation)
    }
  }
}
