public import EventLoop

/// An HTTP/1.1 server over TLS or plain sockets, in the loop.
///
/// It reads what RFC 9112 lets a strict server read and refuses the rest, bounds everything that a peer can make
/// large or slow, and calls one async function for each request. Peers share the loop by what they have shown so far:
/// see `Turnstile`.
@Loop
public final class HTTPServer {
  /// From a request to its answer. Runs on the loop; requests of one connection are answered one after another. Its task
  /// is cancelled when the request has had its time, or the server its patience: then no answer is sent.
  public typealias Handler = @Loop @Sendable (HTTPRequest) async -> HTTPResponse

  /// How long a socket that shares its port takes part in no new connection before it is closed: enough for those in the
  /// middle of connecting, and less than the second after which TCP asks again, and then reaches another.
  private static let parting = Duration.milliseconds(800)

  /// Where it listens, with the real port.
  public nonisolated let address: SocketAddress
  /// What happened so far.
  public internal(set) var statistics = HTTPServerStatistics()

  let configuration: HTTPServerConfiguration
  let handler: Handler
  let certificate: ServedCertificate?
  let turnstile = Turnstile()
  /// How many connections may be open: what the limits say, or fewer where the process cannot have the descriptors.
  public nonisolated let connectionLimit: Int
  /// Why the system did not let a shared port be left in good order, after `drain`: then a few peers that were in the
  /// middle of connecting were reset.
  public private(set) var partingFailure: SystemError?
  private let socket: ListeningSocket
  private var connections: [ObjectIdentifier: HTTPConnection] = [:]
  private var newcomers = Newcomers()
  private var perNetwork: [SocketAddress.InlineAddress: Int] = [:]
  private var isAccepting = false
  private var isDraining = false
  private var hasNoPatience = false
  private let room = Gate()
  private let empty = Gate()

  /// Reads the certificate and binds the address: what is wrong shows here, before anything is promised.
  public init(_ configuration: HTTPServerConfiguration, handler: @escaping Handler) throws(HTTPServerError) {
    self.configuration = configuration
    self.handler = handler
    certificate = if let tls = configuration.tls { try ServedCertificate(tls) } else { nil }
    do throws(SystemError) {
      socket = try ListeningSocket(
        configuration.address, sharingPort: configuration.sharesPort, spares: configuration.spareDescriptors)
    } catch {
      throw HTTPServerError(code: .listen, message: "cannot listen on \(configuration.address): \(error)")
    }
    address = socket.address
    connectionLimit = min(
      configuration.limits.connections, DescriptorLimit.connections(within: DescriptorLimit.current))
  }

  /// How many connections are open.
  public var connectionCount: Int { connections.count }

  /// When the certificate begins to be valid, in seconds since 1970; nil without TLS.
  public var certificateNotBefore: Int64? { certificate?.context.notBefore }

  /// When the certificate expires, in seconds since 1970; nil without TLS.
  public var certificateNotAfter: Int64? { certificate?.context.notAfter }

  /// The issuer of a certificate that is served alone, though another one has signed it; nil otherwise, and without TLS.
  public var missingCertificateIssuer: String? { certificate?.context.missingIssuer }

  /// Looks at the files of the certificate: what was replaced serves the handshakes from here on, what cannot be used
  /// leaves all as it is. To be called every few seconds; `insisting` where somebody wants to know now.
  public func renewCertificate(insisting: Bool) -> CertificateRenewal {
    certificate?.look(insisting: insisting) ?? .unchanged
  }

  /// Serves until `drain` has ended. If its task is cancelled, it ends at once: connections are closed, and the tasks of
  /// handlers that still run are cancelled.
  public func run() async {
    isAccepting = true
    await withTaskCancellationHandler {
      await withDiscardingTaskGroup { group in
        while let accepted = await next() {
          guard let connection = admit(accepted) else { continue }
          group.addTask(executorPreference: Loop.executor) { [self] in await serve(connection) }
        }
        isAccepting = false
        if connections.isEmpty { empty.open() }
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
  /// Who has connected before gets the configuration's `grace` to begin a request. Where the port is shared, so does who
  /// is in the middle of connecting; new connections go to the others. Returns when no connection is left: a handler must
  /// heed its cancellation. A second call shortens the patience.
  public func drain(within patience: Duration) async {
    let end = MonotonicTime.now + patience
    let farewell = min(end, .now + configuration.grace)
    isDraining = true
    let (last, over) = (Deadline(), Deadline())
    last.onPass { [self] in
      socket.closeWhenEmpty()
      room.open()
    }
    over.onPass { [self] in
      hasNoPatience = true
      socket.close()
      room.open()
      for connection in connections.values { connection.abandon() }
    }
    if configuration.sharesPort {
      do throws(SystemError) { try socket.leaveNewcomersToOthers() } catch { partingFailure = error }
      last.set(min(end, .now + Self.parting))
    } else {
      last.set(.now)
    }
    over.set(end)
    for connection in connections.values { connection.drain(beginningUntil: farewell) }
    while isAccepting || !connections.isEmpty {
      empty.close()
      await empty.pass()
    }
    socket.close()
    last.invalidate()
    over.invalidate()
  }

  /// The next connection; nil once the server listens no more.
  private func next() async -> ListeningSocket.Accepted? {
    while !hasNoPatience {
      if connections.count >= connectionLimit {
        guard await socket.untilSomebodyWaits() else { return nil }
        // What has come already is read first: a loop that was kept from turning is no fault of the peers'.
        await Loop.nextTurn()
        // Some may have ended meanwhile.
        room.close()
        guard connections.count >= connectionLimit else { continue }
        statistics.fullTimes += 1
        await untilRoom(until: shed())
        continue
      }
      do throws(SystemError) {
        return try await socket.accept()
      } catch {
        // No descriptors or no memory. It may be ours who hold them, so room is made as where there are too many; beyond
        // that only time helps, and the kernel's queue holds whoever knocks.
        statistics.acceptFailures += 1
        room.close()
        await untilRoom(until: min(shed(), .now + .milliseconds(100)))
      }
    }
    return nil
  }

  /// Waits until a connection has ended since `room` was closed, or that time has come.
  private func untilRoom(until time: MonotonicTime) async {
    let pause = Deadline()
    pause.onPass { [room] in room.open() }
    pause.set(time)
    await room.pass()
    pause.invalidate()
  }

  /// Makes room for others where peers have been here for a while and shown nothing. Returns when the next one will have
  /// been.
  ///
  /// Whoever holds connections open without a good request loses them first, and those that do what this server is for
  /// are never closed for others.
  private func shed() -> MonotonicTime {
    let now = Loop.now
    // Several at once: under a flood each of them costs a few turns of the loop.
    for _ in 0..<max(1, connectionLimit / 256) {
      guard let oldest = newcomers.oldest, let since = oldest.newcomer?.since else { return .distantFuture }
      guard since + configuration.grace <= now else { return since + configuration.grace }
      newcomers.remove(oldest)
      if oldest.isBeingAnswered || oldest.waitsForFirstTurn {
        // What is worked on may be good: it is asked again later than all others.
        newcomers.append(oldest, at: now)
      } else {
        statistics.shed += 1
        oldest.abandon()
      }
    }
    return now + .milliseconds(10)
  }

  /// Notes what the last answer to a connection says of its peer.
  func judge(_ connection: HTTPConnection, isProven: Bool) {
    if isProven {
      newcomers.remove(connection)
    } else if connection.newcomer == nil {
      newcomers.append(connection, at: Loop.now)
    }
  }

  private func admit(_ accepted: ListeningSocket.Accepted) -> HTTPConnection? {
    statistics.accepted += 1
    // A proxy's connections count for those whom it forwards, once it has said who they are.
    let isForwarded = configuration.proxies.contains { $0.contains(accepted.peer) }
    guard !hasNoPatience, isForwarded || hasRoom(for: accepted.peer) else {
      accepted.close()
      socket.refillSpares()
      return nil
    }
    do throws(SystemError) {
      let connection = try HTTPConnection(accepted, isForwarded: isForwarded, server: self)
      if !isForwarded { count(connection) }
      connections[ObjectIdentifier(connection)] = connection
      newcomers.append(connection, at: Loop.now)
      if isDraining { connection.drain(beginningUntil: .now + configuration.grace) }
      return connection
    } catch {
      statistics.acceptFailures += 1
      return nil
    }
  }

  /// Takes note of whom a proxy forwards. False where that one has too many connections.
  func introduce(_ connection: HTTPConnection, as peer: SocketAddress) -> Bool {
    guard hasRoom(for: peer) else { return false }
    connection.peer = peer
    count(connection)
    return true
  }

  private func hasRoom(for peer: SocketAddress) -> Bool {
    if perNetwork[peer.network, default: 0] < configuration.limits.connectionsPerAddress { return true }
    if !hasNoPatience { statistics.refusedPerAddress += 1 }
    return false
  }

  private func count(_ connection: HTTPConnection) {
    connection.isCounted = true
    perNetwork[connection.peer.network, default: 0] += 1
  }

  private func remove(_ connection: HTTPConnection) {
    connections[ObjectIdentifier(connection)] = nil
    newcomers.remove(connection)
    if connection.isCounted {
      let network = connection.peer.network
      let count = perNetwork[network, default: 1] - 1
      perNetwork[network] = count > 0 ? count : nil
    }
    socket.refillSpares()
    room.open()
    if connections.isEmpty, !isAccepting { empty.open() }
  }
}

extension SocketAddress {
  /// What counts as one address: of IPv6, whoever has one has the 64 bits behind it too.
  var network: InlineAddress { isIPv4 ? bytes : InlineAddress(high: bytes.high, low: 0) }
}
