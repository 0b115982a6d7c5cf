import EventLoop

/// One connection from its handshake to its end: a long-lived task, request after request.
///
/// Before it has shown anything good it asks the server's turnstile whenever there is something to do. Only its own task
/// touches the socket and closes it. Whoever wants it to end (a deadline, the server) interrupts its
/// waits and lets it find its way out.
@Loop
@safe final class HTTPConnection {
  /// What the connection is about; decides what a passed deadline and a drain mean.
  enum Phase {
    case handshake, idle, head, body, handling, answering, ending
  }

  private static let fairShare = 16
  /// How many turns a first request takes: those of TLS's two flights, and its own.
  private static let firstTurns = 3
  /// After so long without a request its buffer is given back.
  private static let rest = Duration.seconds(1)
  /// For how many bytes the end is put off.
  private static let lingerBytes = 8_388_608

  /// Who is at the other end: where a proxy forwards it, who is at the proxy's other end.
  var peer: SocketAddress
  /// Whether it counts for its peer's address; the server's.
  var isCounted = false
  /// Whether it comes from a proxy, which says first who the peer is.
  private let isForwarded: Bool
  var reader: RequestReader
  let transport: Transport
  private let writer: HTTPResponseWriter
  let server: HTTPServer
  let deadlines: HTTPServerDeadlines
  private let deadline = Deadline()
  /// The task that serves, for as long as it does.
  private var task: UnsafeCurrentTask?
  private var phase = Phase.handshake
  /// Its place among those that have shown nothing good; the server's. Nil: it is proven.
  var newcomer: Newcomer?
  private let place = Turnstile.Place()
  /// How often it was its turn at the turnstile.
  private var turns = 0
  private var hasServed = false
  private var isTimedOut = false
  private var isDraining = false
  private var isAbandoned = false
  /// Until when a first request may begin, once the server drains.
  private var beginningEnd = MonotonicTime.distantFuture
  private var idleEnd = MonotonicTime.distantFuture
  var requestEnd = MonotonicTime.distantFuture
  var bodyAsked = false
  var toldToGoOn = false

  init(_ accepted: ListeningSocket.Accepted, isForwarded: Bool, server: HTTPServer) throws(SystemError) {
    peer = accepted.peer
    self.isForwarded = isForwarded
    self.server = server
    deadlines = server.configuration.deadlines
    reader = RequestReader(limits: server.configuration.limits)
    transport = try Transport(accepted)
    writer = HTTPResponseWriter(transport)
  }

  /// Serves the peer until one of both has enough.
  func run() async {
    deadline.onPass { [unowned self] in passed() }
    // Kept beyond the closure, but not beyond this function, which the task cannot outlive; and only to cancel it.
    unsafe withUnsafeCurrentTask { unsafe task = $0 }
    await serve()
    unsafe task = nil
    deadline.invalidate()
    transport.descriptor.close()
  }

  private func serve() async {
    do throws(Transport.Failure) {
      let end = Loop.now + deadlines.handshake
      guard try await introduction(until: end), try await handshake(until: end) else { return }
      var served = 0
      while await untilBegun() {
        guard try await answerNext() else { return await linger() }
        served += 1
        hasServed = true
        // A peer that always has more to say must not keep the loop from the others.
        if served % Self.fairShare == 0 { await Loop.nextTurn() }
      }
      transport.endWriting()
    } catch {
      if isTimedOut { server.statistics.timeouts += 1 }
    }
  }

  /// Reads what a proxy says of the peer. False where the connection ends.
  ///
  /// Nobody else's turn is waited for: a header is read in two calls of the system, no more often than connections are
  /// accepted, and whose turn it is hangs on whom it names.
  private func introduction(until end: MonotonicTime) async throws(Transport.Failure) -> Bool {
    guard isForwarded else { return true }
    enter(.handshake, until: end)
    do throws(Transport.Failure) {
      var beginning: [UInt8] = []
      while true {
        try await transport.untilReadable()
        switch try transport.readProxyHeader(after: &beginning) {
        case .incomplete: continue
        case .refused:
          server.statistics.proxyHeadersRefused += 1
          return false
        case .complete(let header):
          guard let source = header.source else { return true }
          return server.introduce(self, as: source)
        }
      }
    } catch {
      // A balancer that only connects, to see whether somebody listens, says nothing.
      if isTimedOut { server.statistics.handshakesTimedOut += 1 }
      return false
    }
  }

  private func handshake(until end: MonotonicTime) async throws(Transport.Failure) -> Bool {
    guard let certificate = server.certificate else { return true }
    enter(.handshake, until: end)
    do throws(Transport.Failure) {
      repeat {
        try await transport.untilReadable()
        if newcomer != nil { try await untilTurn() }
      } while try !transport.handshake({ certificate.contextForHandshake(at: Loop.now) })
      return true
    } catch {
      // A balancer that only looks whether somebody is here sends its header at most.
      let isLook = isForwarded && error == .closed && !transport.hasBegunTLS
      if !isDraining, !isLook { server.statistics.handshakeFailed(error, isTimedOut) }
      // What the peer is told, by us or by OpenSSL's alert, is to reach it.
      switch error {
      case .plainHTTP:
        transport.answerPlainHTTP()
        await linger()
      case .tls, .otherProtocol: await linger()
      case .closed, .interrupted: break
      }
      return false
    }
  }

  /// Lets others go first. For a peer that has shown nothing good yet.
  private func untilTurn() async throws(Transport.Failure) {
    await server.turnstile.pass(place, of: peer.network)
    turns += 1
    if transport.descriptor.isInterrupted { throw .interrupted }
  }

  // MARK: From the first byte to the answer

  /// Waits for the first byte of a request. False if none comes.
  private func untilBegun() async -> Bool {
    idleEnd = Loop.now + deadlines.idle
    enter(.idle, until: min(idleEnd, Loop.now + Self.rest))
    do throws(Transport.Failure) {
      if !reader.isEmpty {
        if newcomer != nil { try await untilTurn() }
        return true
      }
      while !isDraining || !hasServed {
        try await transport.untilReadable()
        if newcomer != nil { try await untilTurn() }
        if try take() > 0 { return true }
        // As in `receive`: what came may be no byte for us, and there may be more of it for as long as the peer likes.
        await Loop.nextTurn()
      }
    } catch {
      guard error == .interrupted, isDraining else { return false }
    }
    guard !isTimedOut, !isAbandoned else { return false }
    // The server ends. A request whose first bytes are here already was begun all the same.
    transport.descriptor.resumeWaiting()
    // Its share of this turn may be used up.
    await Loop.nextTurn()
    if !reader.isEmpty { return true }
    do throws(Transport.Failure) { return try take() > 0 || transport.holdsPart } catch { return false }
  }

  /// One request and its answer. False when the connection ends after it.
  ///
  /// What need not wait is done without an async call, which costs even where it does not wait.
  private func answerNext() async throws(Transport.Failure) -> Bool {
    let now = Loop.now
    requestEnd = now + deadlines.request
    enter(.head, until: min(now + deadlines.head, requestEnd))
    var step = reader.readHead()
    while step == .incomplete {
      do throws(Transport.Failure) {
        try await receive()
        step = reader.readHead()
      } catch {
        guard isOnlyLate(error) else { throw error }
        step = .refused(MessageRefusal(status: 408, reason: "the request's head took too long"))
      }
    }
    let response: HTTPResponse
    let form: HTTPResponseWriter.Form
    if case .refused(let refusal) = step {
      server.statistics.refused += 1
      response = server.configuration.refusal(refusal)
      form = HTTPResponseWriter.Form(keepsAlive: false, isHTTP11: true, isHead: false)
    } else {
      let request = beginHandling()
      response = await server.handler(request)
      form = try endHandling(of: request, with: response)
    }
    beginAnswer(response, form)
    let isWhole = try writer.begin(response, form)
    let goesOn = isWhole ? form.keepsAlive : try await writer.finish(response, form)
    endEndlessStream()
    guard goesOn else { return false }
    reader.finish()
    return true
  }

  private func beginHandling() -> HTTPRequest {
    server.statistics.requests += 1
    enter(.handling, until: requestEnd)
    (bodyAsked, toldToGoOn) = (false, false)
    return HTTPRequest(self, peer: peer)
  }

  /// What the answer says of the peer, and what the request says of the answer's form. Throws where nobody waits for it.
  private func endHandling(
    of request: HTTPRequest, with response: HTTPResponse
  ) throws(Transport.Failure) -> HTTPResponseWriter.Form {
    request.end()
    switch response.status {
    case 200..<400: server.judge(self, isProven: true)
    case 400..<500: server.judge(self, isProven: false)
    default: break  // ours is no fault of the peer's
    }
    if isTimedOut || isAbandoned { throw .interrupted }
    // What the handler did not want to read: if it is here already it is skipped, otherwise the connection ends. A peer
    // that waits for our word to go on may send its body or not; nobody could tell what its next bytes are.
    if !reader.isComplete, bodyAsked || !reader.head.expectsContinue {
      _ = reader.readBody(limit: server.configuration.limits.body)
    }
    let isHead = reader.withHead { head, bytes in bytes.has(head.method, "HEAD") }
    let keepsAlive = reader.head.keepsAlive && reader.isComplete && !response.closesConnection && !isDraining
    return HTTPResponseWriter.Form(keepsAlive: keepsAlive, isHTTP11: reader.head.isHTTP11, isHead: isHead)
  }

  /// An answer that was ready in time also gets the time to leave; a stream without end gets its own deadlines.
  private func beginAnswer(_ response: HTTPResponse, _ form: HTTPResponseWriter.Form) {
    enter(.answering, until: max(requestEnd, Loop.now + .seconds(1)))
    if case .endlessStream(let patience, _) = response.body, !form.isHead { beginEndlessStream(patience) }
  }

  /// From the end of the head on there is no deadline but that of each piece on its way. Nobody reads what the peer may
  /// send meanwhile: that it has left, the kernel says.
  private func beginEndlessStream(_ patience: Duration) {
    writer.onPiece = { [unowned self] isLeaving in
      enter(.answering, until: isLeaving ? Loop.now + patience : .distantFuture)
    }
    transport.giveUp(after: patience)
    transport.descriptor.onEnd { [unowned self] in
      interrupt()
      unsafe task?.cancel()
    }
  }

  private func endEndlessStream() {
    guard writer.onPiece != nil else { return }
    writer.onPiece = nil
    transport.descriptor.onEnd(nil)
  }

  /// Ends so that the peer gets our last answer even if it is still sending: a close with unread bytes would reset the
  /// connection, and could take the answer from the peer.
  private func linger() async {
    transport.endWriting()
    let linger = deadlines.linger
    let silence = reader.isComplete ? linger.silence : linger.silenceOfASender
    let end = Loop.now + linger.total
    var left = Self.lingerBytes
    repeat {
      enter(.ending, until: min(end, Loop.now + silence))
      guard let count = await transport.discard() else { return }
      left -= count
    } while left > 0
  }

  // MARK: Receiving

  /// Waits for at least one more byte.
  func receive() async throws(Transport.Failure) {
    while true {
      try await transport.untilReadable()
      if newcomer != nil { try await untilTurn() }
      if try take() > 0 { return }
      // A part of a record; or a whole share of the turn without a byte for us.
      await Loop.nextTurn()
    }
  }

  /// Takes in what is there; 0 if nothing is.
  private func take() throws(Transport.Failure) -> Int {
    let transport = transport
    let count = try unsafe reader.receive { room throws(Transport.Failure) in
      try unsafe transport.readAvailable(room)
    }
    // No room: a message at its limit is complete or refused before that.
    guard let count else { throw .closed }
    return count
  }

  // MARK: Deadlines and the end

  private func enter(_ phase: Phase, within time: Duration) { enter(phase, until: Loop.now + time) }

  func enter(_ phase: Phase, until time: MonotonicTime) {
    self.phase = phase
    deadline.set(phase == .handshake || phase == .idle ? min(time, beginningEnd) : time)
  }

  private func passed() {
    if phase == .idle, Loop.now < min(idleEnd, beginningEnd) {
      reader.release()
      return deadline.set(min(idleEnd, beginningEnd))
    }
    // What has come of a first request waits for its turn: the server ends, but not because of this peer.
    if phase == .handshake || phase == .idle, beginningEnd != .distantFuture, place.isTaken, !isAbandoned {
      return deadline.set(Loop.now + .seconds(1))
    }
    isTimedOut = true
    interrupt()
    // The handler, or whoever streams the answer, has had its time.
    if phase == .handling || phase == .answering { unsafe task?.cancel() }
  }

  /// Whether a wait ended for no other reason than a deadline that leaves time for an answer; then waits go on.
  func isOnlyLate(_ failure: Transport.Failure) -> Bool {
    guard failure == .interrupted, isTimedOut, !isAbandoned else { return false }
    isTimedOut = false
    server.statistics.timeouts += 1
    transport.descriptor.resumeWaiting()
    return true
  }

  /// Ends whatever it waits for.
  private func interrupt() {
    transport.descriptor.interrupt()
    place.leave()
  }

  /// Whether its handler, or its answer, is under way.
  var isBeingAnswered: Bool { phase == .handling || phase == .answering }

  /// Whether it waits for one of the turns that a first request takes: that it has shown nothing is no fault of the peer's.
  var waitsForFirstTurn: Bool { place.isTaken && turns < Self.firstTurns }

  /// The server ends: a connection on which requests were served closes now, or after its answer; one on which none has
  /// begun yet has until `end` to begin it.
  func drain(beginningUntil end: MonotonicTime) {
    isDraining = true
    beginningEnd = end
    guard phase == .handshake || phase == .idle else { return }
    if hasServed { interrupt() } else { deadline.set(min(deadline.due, end)) }
  }

  /// It has to end now, whatever it is about.
  func abandon() {
    isAbandoned = true
    interrupt()
    unsafe task?.cancel()
  }
}
