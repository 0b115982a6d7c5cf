import CLibpq
import EventLoop

/// A connection that comes to stand, or does not.
///
/// The loop does the waiting. libpq's steps in between run on a thread, because they may block: names are looked up,
/// certificates and password files read, and a password is hashed thousands of times.
@Loop
@safe final class ConnectionAttempt {
  private static let thread = BlockingThread(named: "pg-connect")

  /// libpq's connection on its way between the thread and the loop. @unchecked: one of the two has it at a time.
  @safe private struct Handle: @unchecked Sendable {
    let pointer: OpaquePointer
  }

  private let connectionInfo: String
  private let notices: NoticeSink
  private let deadline = Deadline()
  private var asking: CheckedContinuation<Result<Link, PostgreSQLError>, Never>?
  private var watcher: WatchedDescriptor?
  private var waiting: CheckedContinuation<Void, Never>?
  /// Why nobody waits for it any more.
  private var refusal: PostgreSQLError?

  private init(_ connectionInfo: String, _ notices: NoticeSink) {
    (self.connectionInfo, self.notices) = (connectionInfo, notices)
  }

  /// Connects as the configuration says.
  static func connect(
    _ configuration: PostgreSQLConfiguration, log: @escaping PostgreSQLLog
  ) async throws(PostgreSQLError) -> Link {
    let attempt = ConnectionAttempt(configuration.connectionInfo, NoticeSink(log))
    let limit = configuration.connectTimeout
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { attempt.start(within: limit, $0) }
    } onCancel: {
      Task { @Loop in attempt.giveUp(.cancelled) }
    }
    return try result.get()
  }

  private func start(within limit: Duration, _ asking: CheckedContinuation<Result<Link, PostgreSQLError>, Never>) {
    if let refusal { return asking.resume(returning: .failure(refusal)) }
    self.asking = asking
    deadline.onPass { [weak self] in
      self?.giveUp(PostgreSQLError(.connection, detail: "no connection within \(limit)"))
    }
    deadline.set(.now + limit)
    Task(executorPreference: Loop.executor) { await self.run() }
  }

  /// Answers now. What the thread is doing ends by itself.
  private func giveUp(_ reason: PostgreSQLError) {
    refusal = reason
    answer(.failure(reason))
    wake()
  }

  private func run() async {
    let handle = await Self.thread.run { [connectionInfo, notices] () -> Handle? in
      guard let pointer = unsafe clibpq_connect(connectionInfo) else { return nil }
      // Of what a server says when it refuses, its code alone: the rest may be in any language.
      unsafe PQsetErrorVerbosity(pointer, PQERRORS_SQLSTATE)
      unsafe notices.listen(to: pointer)
      return unsafe Handle(pointer: pointer)
    }
    guard let handle else {
      return answer(.failure(PostgreSQLError(.resources, detail: "no memory for a connection")))
    }
    guard let failure = await handshake(handle) else { return }
    unsafe PQfinish(handle.pointer)
    answer(.failure(failure))
  }

  /// Takes the connection's steps, and answers with it where it stands; returns why it does not.
  private func handshake(_ handle: Handle) async -> PostgreSQLError? {
    var status = unsafe PQstatus(handle.pointer) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING
    while true {
      if let refusal { return refusal }
      switch status {
      case PGRES_POLLING_READING, PGRES_POLLING_WRITING:
        do throws(SystemError) {
          try await untilReady(unsafe PQsocket(handle.pointer), status == PGRES_POLLING_READING ? .readable : .writable)
        } catch {
          return PostgreSQLError(.connection, detail: "the socket cannot be waited for: \(error)")
        }
        if let refusal { return refusal }
        status = await Self.thread.run { unsafe PQconnectPoll(handle.pointer) }
      case PGRES_POLLING_OK:
        if unsafe PQgssEncInUse(handle.pointer) != 0 {
          return PostgreSQLError(.configuration, detail: "encryption by GSSAPI is not supported: use TLS")
        }
        let link = unsafe Link(owning: handle.pointer, notices)
        do throws(SystemError) {
          try link.watch()
          answer(.success(link))
        } catch {
          answer(.failure(PostgreSQLError(.connection, detail: "the socket cannot be waited for: \(error)")))
        }
        return nil
      default: return unsafe .connection(handle.pointer)
      }
    }
  }

  private func answer(_ result: Result<Link, PostgreSQLError>) {
    deadline.invalidate()
    asking?.resume(returning: result)
    asking = nil
  }

  /// Waits for the socket. It is watched for no longer than that: libpq's next step may close it and open another.
  private func untilReady(_ socket: CInt, _ interest: Readiness) async throws(SystemError) {
    watcher = try WatchedDescriptor(socket, interest: interest) { [weak self] _ in self?.wake() }
    await withCheckedContinuation { continuation in
      // Somebody may have given up, or the socket been ready, before this place.
      if watcher == nil { return continuation.resume() }
      waiting = continuation
    }
  }

  private func wake() {
    watcher?.stop()
    watcher = nil
    waiting?.resume()
    waiting = nil
  }
}
