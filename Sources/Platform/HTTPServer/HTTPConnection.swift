import EventLoop

/// One connection from its handshake to its end: a long-lived task, request after request.
@Loop
final class HTTPConnection {
  /// What the connection waits for; decides what a passed deadline and a drain mean.
  private enum Phase {
    case handshake, idle, head, body, handling, writing, ending
  }

  private static let fairShare = 16
  private static let lingerBytes = 262_144
  private static let linger = Duration.seconds(2)

  let peer: SocketAddress
  var reader: RequestReader
  private let transport: Transport
  private let server: HTTPServer
  private let deadlines: HTTPServerDeadlines
  private let deadline = Deadline()
  private var phase = Phase.handshake
  private var isDraining = false
  private var isTimedOut = false
  private var bodyAsked = false
  private var requestEnd = MonotonicTime.distantFuture
  private var out: [UInt8] = []

  init(_ accepted: ListeningSocket.Accepted, server: HTTPServer) throws(SystemError) {
    peer = accepted.peer
    self.server = server
    deadlines = server.configuration.deadlines
    reader = RequestReader(limits: server.configuration.limits)
    transport = try Transport(accepted, context: server.tls)
  }

  /// Serves the peer until one of both has enough.
  func run() async {
    deadline.onPass { [unowned self] in passed() }
    await serve()
    deadline.invalidate()
    transport.descriptor.close()
  }

  private func serve() async {
    enter(.handshake, within: deadlines.handshake)
    do throws(Transport.Failure) {
      try await transport.handshake()
    } catch {
      server.statistics.handshakeFailed(error, isTimedOut)
      if error == .plainHTTP {
        transport.writePlain(Self.plainAnswer)
        await linger()
      }
      return
    }
    do throws(Transport.Failure) {
      var served = 0
      while try await answerNext() {
        served += 1
        // A peer that always has more to say must not keep the loop from the others.
        if served % Self.fairShare == 0 { await Task.yield() }
      }
    } catch {
      if isTimedOut { server.statistics.timeouts += 1 }
      return
    }
    await linger()
  }

  private static let plainAnswer = Array(
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 28\r\nConnection: close\r\n\r\nHTTPS is spoken on this port".utf8)

  /// One request and its answer. False when the connection ends in good order.
  private func answerNext() async throws(Transport.Failure) -> Bool {
    if reader.isEmpty {
      if isDraining { return false }
      enter(.idle, within: deadlines.idle)
    }
    guard let refusal = try await readHead() else { return try await handle() }
    guard refusal.status != 0 else { return false }
    server.statistics.refused += 1
    try await send(.refusal(refusal), keepsAlive: false, isHTTP11: true, isHead: false)
    return false
  }

  /// Nil once a head is there; otherwise why not: a refusal of status 0 is a peer that had nothing more to say.
  private func readHead() async throws(Transport.Failure) -> MessageRefusal? {
    let nothing = MessageRefusal(status: 0, reason: "")
    if !reader.isEmpty { beginHead() }
    while true {
      switch reader.isEmpty ? .incomplete : reader.readHead() {
      case .complete: return nil
      case .refused(let refusal): return refusal
      case .incomplete: break
      }
      let wasEmpty = reader.isEmpty
      do throws(Transport.Failure) {
        try await receive()
      } catch .interrupted where phase == .head && isTimedOut {
        server.statistics.timeouts += 1
        transport.descriptor.resumeWaiting()
        return MessageRefusal(status: 408, reason: "the request's head took too long")
      } catch {
        if wasEmpty { return nothing }
        throw error
      }
      if wasEmpty { beginHead() }
    }
  }

  private func beginHead() {
    let now = Loop.now
    requestEnd = now + deadlines.request
    enter(.head, until: min(now + deadlines.head, requestEnd))
  }

  /// Waits for at least one more byte.
  private func receive() async throws(Transport.Failure) {
    while true {
      try await transport.untilReadable()
      let transport = transport
      guard
        let count = try unsafe reader.receive({ room throws(Transport.Failure) in
          try unsafe transport.readAvailable(room)
        })
      else { throw .closed }
      if count > 0 { return }
    }
  }

  private func handle() async throws(Transport.Failure) -> Bool {
    server.statistics.requests += 1
    enter(.handling, until: requestEnd)
    bodyAsked = false
    let request = HTTPRequest(self, peer: peer)
    let response = await server.handler(request)
    request.end()
    if isTimedOut { throw .interrupted }
    let (isHTTP11, isHead) = (reader.head.isHTTP11, reader.withHead { $1.has($0.method, "HEAD") })
    // What the handler did not want to read: if it is here already it is skipped, otherwise the connection ends.
    if !reader.isComplete, !reader.head.expectsContinue || bodyAsked {
      _ = reader.readBody(limit: server.configuration.limits.body)
    }
    let keepsAlive = reader.head.keepsAlive && reader.isComplete && !response.closesConnection && !isDraining
    try await send(response, keepsAlive: keepsAlive, isHTTP11: isHTTP11, isHead: isHead)
    guard keepsAlive else { return false }
    reader.finish()
    return true
  }

  /// For the handler, through its request.
  func readBody(limit: Int) async -> HTTPRequest.BodyResult {
    bodyAsked = true
    var step = reader.readBody(limit: limit)
    guard step == .incomplete else { return result(step) }
    enter(.body, until: min(Loop.now + deadlines.body, requestEnd))
    defer { enter(.handling, until: requestEnd) }
    do throws(Transport.Failure) {
      if reader.head.expectsContinue { try await transport.write(Self.goOn) }
      while step == .incomplete {
        try await receive()
        step = reader.readBody(limit: limit)
      }
    } catch {
      guard error == .interrupted, isTimedOut, requestEnd > Loop.now else { return .lost }
      // The body took too long, but the answer still has its time.
      isTimedOut = false
      server.statistics.timeouts += 1
      transport.descriptor.resumeWaiting()
      return .refused(MessageRefusal(status: 408, reason: "the request's body took too long"))
    }
    return result(step)
  }

  private static let goOn = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

  private func result(_ step: RequestReader.Body) -> HTTPRequest.BodyResult {
    if case .refused(let refusal) = step {
      server.statistics.refused += 1
      return .refused(refusal)
    }
    return .complete
  }

  private func send(
    _ response: HTTPResponse, keepsAlive: Bool, isHTTP11: Bool, isHead: Bool
  ) async throws(Transport.Failure) {
    enter(.writing, until: max(requestEnd, Loop.now + .seconds(1)))
    out.removeAll(keepingCapacity: true)
    switch response.body {
    case .bytes(let body):
      ResponseHead.append(
        response, delimiter: .length(body.count), keepsAlive: keepsAlive, isHTTP11: isHTTP11, to: &out)
      if !isHead { out.append(contentsOf: body) }
      try await transport.write(out)
    case .stream(let produce):
      ResponseHead.append(
        response, delimiter: isHTTP11 ? .chunked : .close, keepsAlive: keepsAlive && isHTTP11, isHTTP11: isHTTP11,
        to: &out)
      try await transport.write(out)
      if isHead { return }
      try await stream(produce, isChunked: isHTTP11)
      if !isHTTP11 { throw .closed }
    }
    if out.capacity > 16_384 { out = [] }
  }

  private func stream(
    _ produce: @Loop @Sendable (HTTPBodyWriter) async throws -> Void, isChunked: Bool
  ) async throws(Transport.Failure) {
    let writer = HTTPBodyWriter(transport, isChunked: isChunked)
    defer { writer.end() }
    do {
      try await produce(writer)
    } catch {
      throw .closed
    }
    if isChunked { try await transport.write(Array("0\r\n\r\n".utf8)) }
  }

  /// Closes so that the peer gets our last answer even if it is still sending.
  private func linger() async {
    enter(.ending, within: Self.linger)
    transport.endWriting()
    await transport.discard(upTo: Self.lingerBytes)
  }

  // MARK: Deadlines and drain

  private func enter(_ phase: Phase, within time: Duration) { enter(phase, until: Loop.now + time) }

  private func enter(_ phase: Phase, until time: MonotonicTime) {
    self.phase = phase
    deadline.set(time)
  }

  private func passed() {
    isTimedOut = true
    transport.descriptor.interrupt()
  }

  /// The server ends: a connection on which no request has begun closes now, another one after its answer.
  func drain() {
    isDraining = true
    switch phase {
    case .handshake, .idle, .ending: transport.descriptor.interrupt()
    case .head, .body, .handling, .writing: break
    }
  }

  /// The server's patience is over.
  func abandon() { transport.descriptor.close() }

  /// Whether it only waits for a next request that may never come.
  var isIdle: Bool { phase == .idle }
}
