/// Counts of what a server has seen since it started; they only grow.
public struct HTTPServerStatistics: Sendable, Equatable {
  /// Connections that the kernel handed over.
  public internal(set) var accepted: UInt64 = 0
  /// Connections closed at once because their address had too many.
  public internal(set) var refusedPerAddress: UInt64 = 0
  /// Connections closed to make room: for a second or more they had shown nothing but refused requests, or nothing.
  public internal(set) var shed: UInt64 = 0
  /// Times that no further connection was taken because there were too many in all.
  public internal(set) var fullTimes: UInt64 = 0
  /// Times that a connection could not be taken for want of descriptors or memory.
  public internal(set) var acceptFailures: UInt64 = 0
  /// Connections of proxies that did not begin with a header of the PROXY protocol.
  public internal(set) var proxyHeadersRefused: UInt64 = 0
  /// Handshakes that a peer broke off or made impossible.
  public internal(set) var handshakesFailed: UInt64 = 0
  /// Handshakes that took too long.
  public internal(set) var handshakesTimedOut: UInt64 = 0
  /// Peers that offered other protocols alone, such as HTTP/2.
  public internal(set) var protocolsRefused: UInt64 = 0
  /// Peers that spoke plain HTTP to a TLS port.
  public internal(set) var plainRequests: UInt64 = 0
  /// Requests that reached the handler.
  public internal(set) var requests: UInt64 = 0
  /// Messages refused by the server itself, malformed or too large.
  public internal(set) var refused: UInt64 = 0
  /// Heads, bodies and answers that took too long.
  public internal(set) var timeouts: UInt64 = 0

  mutating func handshakeFailed(_ failure: Transport.Failure, _ isTimedOut: Bool) {
    if isTimedOut {
      handshakesTimedOut += 1
    } else if failure == .plainHTTP {
      plainRequests += 1
    } else if failure == .otherProtocol {
      protocolsRefused += 1
    } else {
      handshakesFailed += 1
    }
  }
}
