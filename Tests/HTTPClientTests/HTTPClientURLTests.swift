import HTTPClient
import Testing

@Suite struct HTTPClientURLTests {
  @Test(arguments: [
    "https://appleid.apple.com/auth/keys", "https://appleid.apple.com:8443/auth/keys?x=1", "HTTPS://EXAMPLE.com",
    "https://192.0.2.1/", "https://[2001:db8::1]/", "http://127.0.0.1:8080/keys", "http://127.9.9.9/",
    "http://[::1]:80/", "http://localhost:1234/",
  ])
  func takesTLSAnywhereAndPlainHTTPOnLoopback(text: String) {
    #expect(HTTPClientURL(text) != nil)
  }

  @Test(arguments: [
    "", "appleid.apple.com", "/auth/keys", "https://", "https:///keys", "ftp://127.0.0.1/", "file:///etc/passwd",
    "http://appleid.apple.com/", "http://192.0.2.1/", "http://128.0.0.1/", "http://127.0.0.1.example.com/",
    "http://localhost.example.com/", "http://[::2]/", "http://10.0.0.1#127.0.0.1/", "https://user@example.com/",
    "https://user:secret@example.com/", "http://example.com@127.0.0.1/", "https://example.com/#part",
    "https://example.com/a b", "https://example.com/\u{0}", "https://example.com/\r\nX: y", "https://ex\u{e4}mple.com/",
    "https://example.com:99999/", "https://example.com:x/", "https://" + String(repeating: "a", count: 2048),
  ])
  func refusesEverythingElse(text: String) {
    #expect(HTTPClientURL(text) == nil)
  }

  @Test func judgesTheAddressThatLibcurlWillAsk() throws {
    // libcurl reads these as 127.0.0.1 and 10.0.0.1: what counts is what it would connect to.
    #expect(try #require(HTTPClientURL("http://0x7f000001/")).host == "127.0.0.1")
    #expect(HTTPClientURL("http://167772161/") == nil)
  }

  @Test func leavesTheQueryOutOfItsDescription() throws {
    let url = try #require(HTTPClientURL("https://example.com/path?token=secret"))
    #expect(url.description == "https://example.com/path")
    #expect(url.text == "https://example.com/path?token=secret")
  }
}
