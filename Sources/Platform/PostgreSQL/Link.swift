import CLibpq
import EventLoop
import Synchronization

/// A connection of libpq's that stands: owns its handle, and waits for its socket in the loop. In pipeline mode.
///
/// libpq closes the socket itself where it finds the connection broken, so after each of its calls that may read or write
/// comes `settle`: the loop must have forgotten the socket before somebody else gets its number.
@Loop
@safe final class Link {
  /// libpq's connection; not to be used once there is an `end`.
  let handle: OpaquePointer
  /// Why it is over; nil while it is not.
  private(set) var end: PostgreSQLError?
  /// Called once, when it is over.
  var onEnd: @Loop () -> Void = {}

  private let notices: NoticeSink
  private let deadline = Deadline()
  private var watcher: WatchedDescriptor?
  private var isWatchedForRoom = false
  private var isBroken = false
  private var hasNews = false
  private var waiting: CheckedContinuation<Void, Never>?
  private var isInUse = false

  /// Takes over a connection that stands.
  init(owning handle: OpaquePointer, _ notices: NoticeSink) {
    unsafe self.handle = handle
    self.notices = notices
    let isReady = unsafe PQsetnonblocking(handle, 1) == 0 && PQenterPipelineMode(handle) == 1
    precondition(isReady, "a connection that has just come to stand is idle")
    deadline.onPass { [weak self] in
      self?.end(PostgreSQLError(.unanswered, detail: "the server did not answer in time"))
    }
  }

  isolated deinit { end(.closed) }

  /// Has the loop watch the socket, from here on.
  func watch() throws(SystemError) {
    watcher = try WatchedDescriptor(unsafe PQsocket(handle), interest: .readable) { [weak self] _ in self?.receive() }
  }

  /// Ends the connection at once, and with it whatever waits for it.
  func end(_ reason: PostgreSQLError) {
    guard end == nil else { return }
    end = reason
    forgetSocket()
    deadline.invalidate()
    unsafe PQfinish(handle)
    wake()
    onEnd()
    onEnd = {}
  }

  /// An exchange begins, which has to be over in time.
  func begin(within limit: Duration) {
    isInUse = true
    deadline.set(.now + limit)
  }

  /// The exchange is over.
  func finish() {
    isInUse = false
    deadline.clear()
    watch(forRoom: false)
    // A server that shut down meanwhile has left its end in the exchange's last bytes.
    if isBroken, end == nil { end(unsafe .connection(handle)) }
  }

  /// Calls one of libpq's functions that take something to send; throws where it could not.
  func send(_ call: (OpaquePointer) -> CInt) throws(PostgreSQLError) {
    if let end { throw end }
    let isTaken = unsafe call(handle) == 1
    settle()
    guard isTaken, !isBroken else { throw unsafe .connection(handle) }
  }

  /// Has the rows of the statement whose results come next handed out as they come. libpq refuses that for what was
  /// aborted; nothing depends on it there.
  func readRowsOneByOne() throws(PostgreSQLError) {
    if let end { throw end }
    _ = unsafe PQsetSingleRowMode(handle)
  }

  /// The version of the server; 0 where the connection is over.
  var serverVersion: CInt { end == nil ? unsafe PQserverVersion(handle) : 0 }

  /// Whether it stands, and the server waits for the beginning of something.
  var isIdle: Bool { unsafe end == nil && !isInUse && PQtransactionStatus(handle) == PQTRANS_IDLE }

  /// The next result; nil between the results of one statement and those of the next.
  func next() async throws(PostgreSQLError) -> QueryResult? {
    while true {
      if let end { throw end }
      hasNews = false
      let isWaiting = unsafe !isBroken && PQflush(handle) == 1
      settle()
      // libpq does not block any more where it has found its connection broken; what had come before is still handed out.
      let isThere = unsafe PQisBusy(handle) == 0
      settle()
      if isThere || isBroken {
        let result = unsafe PQgetResult(handle)
        settle()
        if let result = unsafe result { return unsafe QueryResult(owning: result) }
        if isBroken { throw unsafe .connection(handle) }
        return nil
      }
      watch(forRoom: isWaiting)
      await withCheckedContinuation { continuation in
        // A task that does not prefer the loop's executor gives way between the calls above and this place.
        if hasNews || end != nil { return continuation.resume() }
        waiting = continuation
      }
    }
  }

  /// Takes what the socket has. Where nothing was asked, that is a notice or the end.
  private func receive() {
    repeat {
      let isGood = unsafe PQconsumeInput(handle) == 1
      settle()
      if !isGood { isBroken = true }
    } while unsafe !isBroken && clibpq_has_pending(handle) == 1
    if !isInUse {
      _ = unsafe PQisBusy(handle)  // reads notices
      settle()
      if isBroken { return end(unsafe .connection(handle)) }
      if notices.isFarewell.load(ordering: .relaxed) {
        return end(PostgreSQLError(.unavailable, detail: "the server ended the connection"))
      }
    }
    wake()
  }

  /// Forgets the socket where libpq has closed it.
  private func settle() {
    guard unsafe PQsocket(handle) < 0 || PQstatus(handle) == CONNECTION_BAD else { return }
    isBroken = true
    forgetSocket()
  }

  private func forgetSocket() {
    watcher?.stop()
    watcher = nil
  }

  private func watch(forRoom: Bool) {
    guard forRoom != isWatchedForRoom else { return }
    isWatchedForRoom = forRoom
    watcher?.watch(for: forRoom ? [.readable, .writable] : .readable)
  }

  private func wake() {
    hasNews = true
    waiting?.resume()
    waiting = nil
  }
}
