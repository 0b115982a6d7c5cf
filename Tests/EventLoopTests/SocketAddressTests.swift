import EventLoop
import Testing

@Suite struct SocketAddressTests {
  static let addresses: [(text: String, description: String)] = [
    ("127.0.0.1:8443", "127.0.0.1:8443"),
    ("0.0.0.0:0", "0.0.0.0:0"),
    ("255.255.255.255:65535", "255.255.255.255:65535"),
    ("[::1]:80", "[::1]:80"),
    ("[::]:8080", "[::]:8080"),
    ("[2001:DB8:0:0::1]:443", "[2001:db8::1]:443"),
    ("[::ffff:10.0.0.1]:1", "10.0.0.1:1"),
  ]

  @Test(arguments: addresses)
  func readsAnAddress(_ text: String, _ description: String) throws {
    let address = try #require(SocketAddress(text))
    #expect(address.description == description)
    #expect(SocketAddress(address.description) == address)
  }

  @Test(arguments: [
    "", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+80", "127.0.0.1: 80",
    "127.0.0.1:80 ", "127.0.0.1:8x", "127.0.0.1\0:80", "127.1:80", "256.0.0.1:80", "localhost:80", "::1:80", "[::1]",
    "[::1]:", "[]:80", "[::1", "[127.0.0.1]:80", "[fe80::1%lo]:80", "127.0.0.1:\u{0661}", "[[::1]]:80",
  ])
  func refusesWhatIsNoAddress(_ text: String) { #expect(SocketAddress(text) == nil) }

  @Test func knowsLoopback() {
    for text in ["127.0.0.1:1", "127.255.0.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
      #expect(SocketAddress(text)?.isLoopback == true, "\(text)")
    }
    for text in ["0.0.0.0:1", "128.0.0.1:1", "[::]:1", "[::2]:1", "[1::1]:1", "[::127.0.0.1]:1"] {
      #expect(SocketAddress(text)?.isLoopback == false, "\(text)")
    }
  }
}
