import CLibcurl
import EventLoop
import Glibc

/// The transfers on their way and their connections: owns the multi handle of libcurl, which the loop drives.
///
/// libcurl says which sockets it waits for and when it wants to be called; the loop calls it then. It is never called
/// from within one of its own callbacks: those only take note.
@Loop
@safe final class TransferSet {
  private let handle: UnsafeMutableRawPointer
  private var transfers: [Transfer.ID: Transfer] = [:]
  private var watched: [CInt: WatchedDescriptor] = [:]
  /// Transfers whose socket could not be watched: they would wait for ever.
  private var unwatched: [(Transfer, SystemError)] = []
  private let timer = Deadline()
  private let maximumCount: Int
  private var isClosed = false

  /// libcurl is prepared once a process, before the first handle.
  private static let isPrepared = {
    // Forgotten there by somebody who looked into connections, it would have libcurl write down every one's secrets.
    if unsafe getenv("SSLKEYLOGFILE") != nil { unsafe unsetenv("SSLKEYLOGFILE") }
    return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
  }()

  init(maximumConnections: Int, maximumCount: Int) {
    guard Self.isPrepared, let handle = unsafe curl_multi_init() else { preconditionFailure("no memory for libcurl") }
    unsafe self.handle = handle
    self.maximumCount = maximumCount
    let here = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe clibcurl_multi_set_long(handle, CURLMOPT_MAX_TOTAL_CONNECTIONS, maximumConnections)
    unsafe clibcurl_multi_set_long(handle, CURLMOPT_MAXCONNECTS, maximumConnections)
    unsafe clibcurl_multi_set_socket(
      handle,
      { easy, socket, what, here, _ in
        unsafe TransferSet.on(here) { unsafe $0.watch(socket, what, easy) }
        return 0
      }, here)
    unsafe clibcurl_multi_set_timer(
      handle,
      { _, milliseconds, here in
        unsafe TransferSet.on(here) { $0.setTimer(milliseconds) }
        return 0
      }, here)
    timer.onPass { [weak self] in self?.act(CURL_SOCKET_TIMEOUT, 0) }
  }

  /// Starts the transfer; `waiter` is resumed exactly once, with the answer or the reason why there is none.
  func start(
    _ transfer: Transfer, within time: Duration,
    _ waiter: CheckedContinuation<Result<HTTPClientResponse, HTTPClientError>, Never>
  ) {
    if let refusal = transfer.refusal ?? refusal() { return waiter.resume(returning: .failure(refusal)) }
    transfer.waiter = waiter
    transfers[transfer.id] = transfer
    transfer.deadline.onPass { [weak self, unowned transfer] in
      self?.end(transfer, HTTPClientError(.deadline, "no whole answer within \(time)"))
    }
    transfer.deadline.set(.now + time)
    let result = unsafe curl_multi_add_handle(handle, transfer.handle)
    if result != CURLM_OK {
      finish(transfer, .failure(HTTPClientError(.resources, "libcurl does not take a transfer")))
    }
  }

  /// Why no further transfer can start, if none can.
  private func refusal() -> HTTPClientError? {
    if isClosed { return .closed }
    return transfers.count < maximumCount
      ? nil : HTTPClientError(.overloaded, "\(maximumCount) requests are on their way")
  }

  /// Ends the transfer early, even before its start. Does nothing where it has ended already.
  func end(_ transfer: Transfer, _ error: HTTPClientError) {
    transfer.refusal = error
    if transfers[transfer.id] != nil { finish(transfer, .failure(error)) }
  }

  /// Ends everything and frees the handle.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    for transfer in transfers.values { end(transfer, .closed) }
    timer.invalidate()
    for watcher in watched.values { watcher.stop() }
    watched = [:]
    unsafe clibcurl_multi_set_socket(handle, nil, nil)
    unsafe clibcurl_multi_set_timer(handle, nil, nil)
    unsafe curl_multi_cleanup(handle)
  }

  /// Lets libcurl work on a socket, or on what is due, and hands out what has ended.
  private func act(_ socket: CInt, _ events: CInt) {
    guard !isClosed else { return }
    var running: CInt = 0
    unsafe curl_multi_socket_action(handle, socket, events, &running)
    var left: CInt = 0
    while let message = unsafe curl_multi_info_read(handle, &left) {
      // The message is gone with the handle's removal: everything is read from it before.
      guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle,
        let transfer = unsafe transfers[Transfer.ID(easy)]
      else { continue }
      let result = unsafe clibcurl_result(message)
      finish(transfer, transfer.outcome(result))
    }
    for (transfer, error) in unwatched { end(transfer, HTTPClientError(.resources, "no room in epoll: \(error)")) }
    unwatched = []
  }

  private func finish(_ transfer: Transfer, _ result: Result<HTTPClientResponse, HTTPClientError>) {
    transfer.deadline.invalidate()
    unsafe curl_multi_remove_handle(handle, transfer.handle)
    transfers[transfer.id] = nil
    transfer.waiter?.resume(returning: result)
    transfer.waiter = nil
  }

  private func watch(_ socket: CInt, _ what: CInt, _ easy: UnsafeMutableRawPointer?) {
    if what == CURL_POLL_REMOVE {
      watched.removeValue(forKey: socket)?.stop()
      return
    }
    var interest: Readiness = []
    if what & CURL_POLL_IN != 0 { interest.insert(.readable) }
    if what & CURL_POLL_OUT != 0 { interest.insert(.writable) }
    if let watcher = watched[socket] { return watcher.watch(for: interest) }
    do throws(SystemError) {
      watched[socket] = try WatchedDescriptor(socket, interest: interest) { [weak self] readiness in
        var events: CInt = 0
        if !readiness.isDisjoint(with: .readable) { events |= CURL_CSELECT_IN }
        if !readiness.isDisjoint(with: .writable) { events |= CURL_CSELECT_OUT }
        if !readiness.isDisjoint(with: .hangup) { events |= CURL_CSELECT_ERR }
        self?.act(socket, events)
      }
    } catch {
      if let easy = unsafe easy, let transfer = unsafe transfers[Transfer.ID(easy)] {
        unwatched.append((transfer, error))
      }
    }
  }

  private func setTimer(_ milliseconds: Int) {
    if milliseconds < 0 { return timer.clear() }
    // From the clock, not from the turn's beginning: 0 means the next turn, not once more within this one.
    timer.set(.now + .milliseconds(milliseconds))
  }

  private nonisolated static func on(_ context: UnsafeMutableRawPointer?, _ body: @Loop (TransferSet) -> Void) {
    guard let context = unsafe context else { return }
    let set = unsafe Unmanaged<TransferSet>.fromOpaque(context).takeUnretainedValue()
    Loop.assumeIsolated { body(set) }
  }
}
