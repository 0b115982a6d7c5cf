public import EventLoop

/// Asks HTTPS servers: libcurl does the talking, the event loop does the waiting.
///
/// A request goes to exactly the address that it names, over HTTP/1.1 and TLS 1.2 or later, with the certificate
/// always verified. Redirects are answers like any other, compressed bodies stay compressed. Of the environment counts
/// where the system's trust anchors are (`TrustAnchors.system`), and the proxy if the configuration says so;
/// SSLKEYLOGFILE, by which libcurl would write down the secrets of its connections, is taken out of it. Every request has
/// a deadline and a limit on what may come back.
///
/// The process must ignore SIGPIPE, as the loop sees to: OpenSSL writes to sockets whose peer may be gone.
@Loop
public final class HTTPClient {
  private let configuration: HTTPClientConfiguration
  private let transfers: TransferSet

  /// A client without connections: the first request makes the first.
  public init(_ configuration: HTTPClientConfiguration) {
    self.configuration = configuration
    transfers = TransferSet(
      maximumConnections: configuration.maximumConnections, maximumCount: configuration.maximumRequests)
  }

  isolated deinit { transfers.close() }

  /// Sends the request and returns the whole answer, whatever its status.
  ///
  /// Cancelling the calling task ends the transfer at once, with `.cancelled`. Where the error is retriable, the
  /// server may nevertheless have received the request: only what may happen twice should be sent again. A request that
  /// `isRepeatable` may reach the server twice by one call.
  public func send(_ request: HTTPClientRequest) async throws(HTTPClientError) -> HTTPClientResponse {
    if let fault = request.faultOfHeaders() { throw HTTPClientError(.malformedRequest, fault) }
    let transfer = try Transfer(request, configuration)
    let transfers = transfers
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { transfers.start(transfer, within: request.deadline, $0) }
    } onCancel: {
      Task { @Loop in transfers.end(transfer, HTTPClientError(.cancelled, "the task was cancelled")) }
    }
    return try result.get()
  }

  /// Ends what is on its way, with `.closed`, and closes all connections.
  public func close() { transfers.close() }
}
