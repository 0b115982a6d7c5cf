import EventLoop
import Testing

@Suite struct AddressRangeTests {
  @Test(arguments: [
    ("10.0.0.0/8", "10.255.255.255:1", "11.0.0.0:1"), ("10.0.0.0/8", "10.0.0.0:1", "9.255.255.255:1"),
    ("192.168.1.128/25", "192.168.1.200:1", "192.168.1.127:1"), ("127.0.0.1", "127.0.0.1:1", "127.0.0.2:1"),
    ("127.0.0.1/32", "127.0.0.1:1", "127.0.0.0:1"), ("0.0.0.0/0", "203.0.113.7:1", "[2001:db8::1]:1"),
    ("2001:db8::/32", "[2001:db8:ffff::1]:1", "[2001:db9::1]:1"), ("::1", "[::1]:1", "[::2]:1"),
    ("2001:db8::/65", "[2001:db8::7fff:0:0:0]:1", "[2001:db8::8000:0:0:0]:1"),
    ("fe80::/10", "[febf::1]:1", "[fec0::1]:1"), ("::ffff:10.0.0.0/104", "10.1.2.3:1", "11.1.2.3:1"),
  ])
  func hasWhatItsPrefixSays(_ text: String, _ inside: String, _ outside: String) throws {
    let range = try #require(AddressRange(text))
    #expect(range.contains(try #require(SocketAddress(inside))))
    #expect(!range.contains(try #require(SocketAddress(outside))))
    #expect(AddressRange("\(range)") == range)
  }

  @Test func everythingHasNoOutside() throws {
    #expect(try #require(AddressRange("::/0")).contains(.loopback(port: 1)))
    #expect(try #require(AddressRange("::/0")).isEverything)
    #expect(try #require(AddressRange("0.0.0.0/0")).isEverything)
    #expect(try !#require(AddressRange("0.0.0.0/1")).isEverything)
  }

  @Test(arguments: [
    "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/08", "10.0.0.0/8/8", "10.0.0.1/8",
    "10.0.0/8", "10.0.0.0:80/8", "localhost", "[::1]", "[::1]/128", "::1/129", "2001:db8::1/32", "10.0.0.0 /8",
  ])
  func isNothingElse(_ text: String) { #expect(AddressRange(text) == nil) }
}
