import EventLoop

/// The header with which a proxy or a load balancer begins a connection that it forwards: who is at its other end. The
/// PROXY protocol, versions 1 and 2 (https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt).
///
/// Only TCP is forwarded here. What a header of version 2 holds behind its addresses is not looked at.
struct ProxyHeader: Equatable {
  /// What became of the bytes so far.
  enum Step: Equatable {
    /// They are the beginning of a header: all of them belong to it.
    case incomplete
    /// There is a whole header.
    case complete(ProxyHeader)
    /// They are none, or one that a strict reader does not take.
    case refused
  }

  /// Who is at the other end; nil where the proxy does not say, or speaks for itself, as it does to see whether we live.
  let source: SocketAddress?
  /// How many bytes it has; those behind it are the peer's.
  let length: Int

  /// The longest header that is read: more than any that is known to be sent, and little to hold for each connection.
  static let longest = 2048

  /// The longest header of version 1, its line end included.
  private static let longestLine = 107
  private static let lineStart = Array("PROXY ".utf8)
  private static let signature: [UInt8] = [
    0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a,
  ]

  /// Reads what a connection begins with.
  static func read(_ bytes: [UInt8]) -> Step {
    guard let first = bytes.first else { return .incomplete }
    return first == signature[0] ? readBinary(bytes) : readLine(bytes)
  }

  // MARK: Version 1

  private static func readLine(_ bytes: [UInt8]) -> Step {
    guard zip(bytes, lineStart).allSatisfy(==) else { return .refused }
    guard let end = bytes.prefix(longestLine).firstIndex(of: 0x0a) else {
      return bytes.count < longestLine ? .incomplete : .refused
    }
    guard end > 0, bytes[end - 1] == 0x0d else { return .refused }
    let line = String(decoding: bytes[..<(end - 1)], as: UTF8.self)
    // One blank between the words, so an empty word is a fault.
    let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    // "PROXY UNKNOWN": what follows on the line is to be ignored.
    if words.count >= 2, words[1] == "UNKNOWN" { return .complete(ProxyHeader(source: nil, length: end + 1)) }
    guard words.count == 6 else { return .refused }
    let isIPv4 = words[1] == "TCP4"
    guard
      isIPv4 || words[1] == "TCP6",
      let source = endpoint(words[2], words[4], isIPv4), endpoint(words[3], words[5], isIPv4) != nil
    else { return .refused }
    return .complete(ProxyHeader(source: source, length: end + 1))
  }

  private static func endpoint(_ host: String, _ port: String, _ isIPv4: Bool) -> SocketAddress? {
    guard let number = UInt16(port), "\(number)" == port, host.contains(":") != isIPv4 else { return nil }
    return SocketAddress(isIPv4 ? "\(host):\(number)" : "[\(host)]:\(number)")
  }

  // MARK: Version 2

  private static func readBinary(_ bytes: [UInt8]) -> Step {
    guard zip(bytes, signature).allSatisfy(==) else { return .refused }
    if bytes.count > 12, bytes[12] & 0xfe != 0x20 { return .refused }  // version 2; LOCAL or PROXY
    guard bytes.count >= 16 else { return .incomplete }
    let isLocal = bytes[12] == 0x20
    let length = 16 + number(bytes[14..<16])
    guard length <= longest else { return .refused }
    let addressSize: Int
    switch (isLocal, bytes[13]) {
    // The proxy itself; or a protocol of which it says nothing. What the header holds is to be ignored.
    case (true, _), (false, 0x00): addressSize = 0
    case (false, 0x11): addressSize = 4
    case (false, 0x21): addressSize = 16
    default: return .refused  // datagrams, Unix sockets, or nothing that there is
    }
    guard length >= 16 + (addressSize > 0 ? 2 * addressSize + 4 : 0) else { return .refused }
    guard bytes.count >= length else { return .incomplete }
    if addressSize == 0 { return .complete(ProxyHeader(source: nil, length: length)) }
    let host = bytes[16..<16 + addressSize]
    let port = UInt16(number(bytes[16 + 2 * addressSize..<18 + 2 * addressSize]))
    return .complete(ProxyHeader(source: SocketAddress(networkBytes: Array(host), port: port), length: length))
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}
