public import EventLoop

/// Connections to one database, lent to one task at a time.
///
/// There are never more than the configuration allows. Who finds none free waits its turn; where a connection breaks or
/// cannot be made, the next attempt comes after a pause that grows from 50 ms to 5 s, and is different each time. One that
/// has been in use or idle for too long is not lent again, and neither is any where a server has refused to write or has
/// not answered.
@Loop
public final class ConnectionPool {
  /// Between attempts to connect that fail.
  private static let (shortestPause, longestPause) = (Duration.milliseconds(50), Duration.seconds(5))

  /// A connection that nobody uses.
  private struct Idle {
    let connection: Connection
    let since: MonotonicTime
  }

  let configuration: PostgreSQLConfiguration
  let jitter: @Sendable () -> Double
  private let log: PostgreSQLLog
  private var idle: [Idle] = []
  private var leased: [ObjectIdentifier: Connection] = [:]
  private var connecting = 0
  private var waiting = WaitingLeases()
  private var failures = 0
  /// Why there is no connection, as far as that is known; nil since one came to stand.
  private var trouble: PostgreSQLError?
  private let retry = Deadline()
  private var isClosed = false
  private var drained: CheckedContinuation<Void, Never>?

  /// A pool without connections: who asks first makes the first.
  ///
  /// - Parameters:
  ///   - jitter: A random number from 0 up to 1, a new one each time.
  ///   - log: Takes what the server says beside its answers.
  public init(
    _ configuration: PostgreSQLConfiguration, jitter: @escaping @Sendable () -> Double, log: @escaping PostgreSQLLog
  ) {
    (self.configuration, self.jitter, self.log) = (configuration, jitter, log)
    retry.onPass { [weak self] in self?.serve() }
  }

  isolated deinit { retry.invalidate() }

  /// Lends a connection to `body`. Nothing may use it afterwards, and `body` asks the pool for no second one, for which
  /// it could wait in vain.
  ///
  /// Throws what `body` throws, or why there was no connection in time: the last attempt's reason, `.exhausted`,
  /// `.cancelled`, `.closed`.
  @discardableResult
  public func withConnection<Value>(_ body: @Loop (Connection) async throws -> Value) async throws -> Value {
    let connection = try await lease()
    defer { giveBack(connection) }
    return try await body(connection)
  }

  /// Ends the pool: lends nothing more, waits at most for `limit` until all is given back, then ends what is not. An attempt
  /// to connect that is on its way is not waited for.
  public func close(within limit: Duration) async {
    guard !isClosed else { return }
    isClosed = true
    retry.invalidate()
    for lease in waiting.removeAll() { lease.answer(.failure(.closed)) }
    endIdle()
    let deadline = Deadline()
    deadline.onPass { [self] in
      for connection in leased.values { connection.link.end(.closed) }
      resumeDrained()
    }
    await withCheckedContinuation { continuation in
      if leased.isEmpty { return continuation.resume() }
      drained = continuation
      deadline.set(.now + limit)
    }
    deadline.invalidate()
  }

  // MARK: Beneath

  /// A connection for the caller alone, until it is given back.
  func lease() async throws(PostgreSQLError) -> Connection {
    if isClosed { throw .closed }
    endOverdue()
    let lease = WaitingLease()
    lease.failure = trouble
    let end = MonotonicTime.now + configuration.leaseTimeout
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        lease.wait(until: end, continuation)
        if isClosed { lease.answer(.failure(.closed)) }
        waiting.append(lease)
        serve()
      }
    } onCancel: {
      Task { @Loop in lease.answer(.failure(.cancelled)) }
    }
    return try result.get()
  }

  /// Takes a connection back; one that is of no further use is closed.
  func giveBack(_ connection: Connection) {
    leased[ObjectIdentifier(connection)] = nil
    if isClosed || !connection.isReusable {
      // The others lead to the same server: one that writes nothing, or that is gone without a word.
      let isServerGone = [.connection, .unanswered].contains(connection.link.end?.code)
      connection.link.end(.closed)
      if connection.isReadOnly || isServerGone { endIdle() }
    } else {
      idle.append(Idle(connection: connection, since: .now))
      endOverdue()
    }
    serve()
  }

  /// Lends what is free to who waits longest, and sees to it that there will be enough.
  private func serve() {
    while !idle.isEmpty, let lease = waiting.popFirst() {
      let connection = idle.removeLast().connection
      leased[ObjectIdentifier(connection)] = connection
      lease.answer(.success(connection))
    }
    if isClosed {
      if leased.isEmpty { resumeDrained() }
      return
    }
    // While attempts fail, one at a time.
    let most = failures == 0 ? configuration.size : 1
    while retry.due == .distantFuture, connecting < min(most, waiting.count),
      idle.count + leased.count + connecting < configuration.size
    {
      connecting += 1
      Task(executorPreference: Loop.executor) { await self.connect() }
    }
  }

  private func connect() async {
    // Who waits is told; the attempt goes on.
    let (slow, limit) = (Deadline(), configuration.connectTimeout)
    slow.onPass { [weak self] in
      self?.note(PostgreSQLError(.connection, detail: "no connection within \(limit)"))
    }
    slow.set(.now + limit)
    defer { slow.invalidate() }
    do throws(PostgreSQLError) {
      let connection = try await Connection.open(configuration, log: log)
      connection.expiry = .now + configuration.longestLife * (1 - jitter() / 10)
      connecting -= 1
      failures = 0
      trouble = nil
      retry.clear()
      if isClosed {
        connection.link.end(.closed)
      } else {
        connection.link.onEnd = { [weak self, unowned connection] in self?.forget(connection) }
        // What ended meanwhile is not kept.
        if connection.link.end == nil { idle.append(Idle(connection: connection, since: .now)) }
      }
    } catch {
      connecting -= 1
      failed(error)
    }
    serve()
  }

  /// Where another attempt may help, whoever waits goes on waiting.
  private func failed(_ error: PostgreSQLError) {
    if error.isRetriable || error.isUncertain {
      note(error)
    } else {
      for lease in waiting.removeAll() { lease.answer(.failure(error)) }
    }
    guard !isClosed else { return }
    var pause = Self.shortestPause
    for _ in 0..<failures where pause < Self.longestPause { pause += pause }
    failures += 1
    retry.set(.now + min(pause, Self.longestPause) * (1 - jitter() / 2))
  }

  private func resumeDrained() {
    drained?.resume()
    drained = nil
  }

  private func note(_ error: PostgreSQLError) {
    trouble = error
    waiting.note(error)
  }

  /// Ends what was in use or idle for too long. Not what has just come to stand: somebody waits for it.
  private func endOverdue() {
    let now = MonotonicTime.now
    endIdle { $0.connection.expiry <= now || now - $0.since >= configuration.longestIdle }
  }

  /// Ends those connections that nobody uses for which `isOver` holds.
  private func endIdle(where isOver: (Idle) -> Bool = { _ in true }) {
    // Each forgets itself with its end.
    for idle in idle.filter(isOver) { idle.connection.link.end(.closed) }
  }

  /// A connection that nobody uses has ended: the server shut down, or threw it out.
  private func forget(_ connection: Connection) { idle.removeAll { $0.connection === connection } }
}
