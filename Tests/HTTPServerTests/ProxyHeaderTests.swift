import EventLoop
import Testing

@testable import HTTPServer

/// What the PROXY protocol's headers say, byte for byte.
@Suite struct ProxyHeaderTests {
  static let signature: [UInt8] = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]
  static let ipv4: [UInt8] = [203, 0, 113, 7, 192, 0, 2, 1, 0x30, 0x39, 0x20, 0xfb]
  static let ipv6: [UInt8] =
    [0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [1] + [0x20, 0x01, 0x0d, 0xb8]
    + [UInt8](repeating: 0, count: 11) + [2] + [0x30, 0x39, 0x20, 0xfb]

  /// A header of version 2.
  static func binary(_ command: UInt8, _ family: UInt8, _ rest: [UInt8], length: Int? = nil) -> [UInt8] {
    let length = length ?? rest.count
    return signature + [command, family, UInt8(length >> 8), UInt8(length & 0xff)] + rest
  }

  private static let extra = [0x04, 0x00, 0x02, 0x61, 0x62] as [UInt8]  // a TLV that means nothing

  static let good: [(header: [UInt8], source: String?)] =
    [
      ("PROXY TCP4 203.0.113.7 192.0.2.1 12345 8443\r\n", "203.0.113.7:12345"),
      ("PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n", "0.0.0.0:0"),
      ("PROXY TCP6 2001:db8::1 2001:db8::2 12345 8443\r\n", "[2001:db8::1]:12345"),
      (
        "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
        "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"
      ),
      ("PROXY UNKNOWN\r\n", nil), ("PROXY UNKNOWN whatever else there is\r\n", nil),
      (
        "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
        nil
      ),
    ].map { (Array($0.0.utf8), $0.1) } + [
      (binary(0x21, 0x11, ipv4), "203.0.113.7:12345"), (binary(0x21, 0x21, ipv6), "[2001:db8::1]:12345"),
      (binary(0x21, 0x11, ipv4 + extra), "203.0.113.7:12345"),
      (binary(0x21, 0x21, ipv6 + extra), "[2001:db8::1]:12345"),
      (binary(0x20, 0x00, []), nil), (binary(0x20, 0x11, ipv4), nil), (binary(0x20, 0x00, extra), nil),
      (binary(0x20, 0x31, [1, 2, 3]), nil), (binary(0x21, 0x00, []), nil), (binary(0x21, 0x00, extra), nil),
      (binary(0x20, 0x00, [UInt8](repeating: 0, count: 2032)), nil),
    ]

  /// In one piece with what is behind it, and byte by byte: all of a beginning belongs to the header.
  @Test(arguments: good) func areRead(_ header: [UInt8], _ source: String?) throws {
    let source = try source.map { try #require(SocketAddress($0)) }
    let expected = ProxyHeader.Step.complete(ProxyHeader(source: source, length: header.count))
    #expect(ProxyHeader.read(header) == expected)
    #expect(ProxyHeader.read(header + [0x16, 0x03, 0x01, 0x0a]) == expected)
    for count in 0..<header.count { #expect(ProxyHeader.read(Array(header[..<count])) == .incomplete, "\(count)") }
  }

  static let bad: [[UInt8]] =
    [
      "GET / HTTP/1.1\r\n", "proxy TCP4 1.2.3.4 1.2.3.4 1 1\r\n", "PROXY\r\n", "PROXY \r\n", "PROXY TCP5 1 2 3 4\r\n",
      "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 1 1\r\n", "PROXY  TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
      "PROXY TCP4 1.2.3.4 1.2.3.4 1 1 \r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n",
      "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
      "PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 +1 1\r\n",
      "PROXY TCP4 1.2.3.4 1.2.3.4 -1 1\r\n",
      "PROXY TCP4 1.2.3.400 1.2.3.4 1 1\r\n", "PROXY TCP4 1.2.3 1.2.3.4 1 1\r\n", "PROXY TCP4 ::1 ::1 1 1\r\n",
      "PROXY TCP6 1.2.3.4 1.2.3.4 1 1\r\n", "PROXY TCP6 [::1] ::1 1 1\r\n", "PROXY TCP6 ::1%lo ::1 1 1\r\n",
      "PROXY TCP4 1.2.3.4\u{0} 1.2.3.4 1 1\r\n", "PROXY TCP4 localhost 1.2.3.4 1 1\r\n",
      "PROXY\tTCP4 1.2.3.4 1.2.3.4 1 1\r\n",
      "PROXY UNKNOWN" + String(repeating: "x", count: 107),
      "PROXY UNKNOWN" + String(repeating: "x", count: 93) + "\r\n",
      "\u{16}\u{3}\u{1}", "\r\nGET / HTTP/1.1\r\n",
    ].map { Array($0.utf8) } + [
      binary(0x11, 0x11, ipv4), binary(0x31, 0x11, ipv4), binary(0x22, 0x11, ipv4), binary(0x2f, 0x00, []),
      binary(0x21, 0x12, ipv4), binary(0x21, 0x22, ipv6), binary(0x21, 0x31, [UInt8](repeating: 0, count: 216)),
      binary(0x21, 0x10, ipv4), binary(0x21, 0x01, ipv4), binary(0x21, 0x41, ipv4), binary(0x21, 0x11, []),
      binary(0x21, 0x11, Array(ipv4.dropLast())), binary(0x21, 0x21, Array(ipv6.dropLast())), binary(0x21, 0x21, ipv4),
      binary(0x21, 0x11, ipv4, length: 65_535), binary(0x20, 0x00, [], length: 2033),
      Array(signature.dropLast()) + [0x0b, 0x21], signature + [0x51],
    ]

  @Test(arguments: bad) func areRefused(_ header: [UInt8]) {
    #expect(ProxyHeader.read(header) == .refused)
    // And no later than with the byte that makes it wrong: nothing but what is one may have been taken for a beginning.
    let first = (0...header.count).first { ProxyHeader.read(Array(header[..<$0])) == .refused }
    #expect(first != nil)
    for count in (first ?? 0)...header.count { #expect(ProxyHeader.read(Array(header[..<count])) == .refused) }
  }
}
