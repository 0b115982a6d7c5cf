import EventLoop

extension Span<UInt8> {
  /// Whether the range is a host and perhaps a port (RFC 3986, sections 3.2.2 and 3.2.3): a name, an IPv4 address, or an
  /// IPv6 address in brackets. A user's name before it is refused: it does not belong into requests.
  func isAuthority(_ range: Range<Int>) -> Bool {
    var index = range.lowerBound
    if index < range.upperBound, self[index] == UInt8(ascii: "[") {
      while index < range.upperBound, self[index] != UInt8(ascii: "]") { index += 1 }
      guard index < range.upperBound else { return false }
      index += 1
      guard SocketAddress(text(range.lowerBound..<index) + ":0") != nil else { return false }
    } else {
      while index < range.upperBound, Characters.isName(self[index]) { index += 1 }
      guard index > range.lowerBound else { return false }
    }
    return index == range.upperBound || self[index] == UInt8(ascii: ":") && isPort((index + 1)..<range.upperBound)
  }

  private func isPort(_ range: Range<Int>) -> Bool {
    guard range.count <= 5 else { return false }
    var port = 0
    for index in range {
      guard Characters.isDigit(self[index]) else { return false }
      port = port * 10 + Int(self[index] - UInt8(ascii: "0"))
    }
    return port <= 65_535
  }
}
