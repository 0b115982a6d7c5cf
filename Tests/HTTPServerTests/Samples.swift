import Testing

@testable import HTTPServer

/// Streams of requests, good and bad, and what they are to be taken for within `ReadMessages.limits`.
enum Samples {
  typealias Message = ReadMessages.Message

  static let good: [Sample<[Message]>] = [
    Sample("GET / HTTP/1.1\r\nHost: a\r\n\r\n", [Message("GET", "/", fields: ["Host: a"])]),
    Sample(
      "GET /a/b%20c?d=e&f=%3F?g HTTP/1.1\r\nHost:a:80\r\n\r\n",
      [
        Message("GET", "/a/b%20c", query: "d=e&f=%3F?g", fields: ["Host: a:80"])
      ]
    ),
    Sample("GET /? HTTP/1.1\r\nHost: a\r\n\r\n", [Message("GET", "/", query: "", fields: ["Host: a"])]),
    Sample("GET //a HTTP/1.1\r\nHost: a\r\n\r\n", [Message("GET", "//a", fields: ["Host: a"])]),
    // Methods are case-sensitive, and any token is one.
    Sample("get / HTTP/1.1\r\nHost: a\r\n\r\n", [Message("get", "/", fields: ["Host: a"])]),
    Sample("M-!#$%&'*+.^_`|~9 / HTTP/1.1\r\nHost: a\r\n\r\n", [Message("M-!#$%&'*+.^_`|~9", "/", fields: ["Host: a"])]),
    // The other forms of a target (RFC 9112, section 3.2).
    Sample("GET http://b:81/c?d HTTP/1.1\r\nHost: a\r\n\r\n", [Message("GET", "/c", query: "d", fields: ["Host: a"])]),
    Sample("GET HTTPS://[::1]/ HTTP/1.1\r\nHost: a\r\n\r\n", [Message("GET", "/", fields: ["Host: a"])]),
    Sample("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", [Message("OPTIONS", "*", fields: ["Host: a"])]),
    // Fields: any case of letters, blanks around the value, an empty value, bytes beyond ASCII, a tab inside.
    Sample(
      "GET / HTTP/1.1\r\nhOST: \t a \t\r\nX:\r\nY: \u{e9}\tz\r\n\r\n",
      [
        Message("GET", "/", fields: ["hOST: a", "X: ", "Y: \u{e9}\tz"])
      ]
    ),
    Sample("GET / HTTP/1.1\r\nHost:\r\n\r\n", [Message("GET", "/", fields: ["Host: "])]),
    Sample(
      "GET / HTTP/1.1\r\nHost: [2001:db8::1]:8443\r\n\r\n", [Message("GET", "/", fields: ["Host: [2001:db8::1]:8443"])]),
    // Whether the connection lasts.
    Sample(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      [
        Message("GET", "/", fields: ["Host: a", "Connection: close"], keepsAlive: false)
      ]
    ),
    Sample(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: x , CLOSE,keep-alive\r\n\r\n",
      [
        Message("GET", "/", fields: ["Host: a", "Connection: x , CLOSE,keep-alive"], keepsAlive: false)
      ]
    ),
    Sample(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\nConnection:,,\r\n\r\n",
      [
        Message("GET", "/", fields: ["Host: a", "Connection: closed", "Connection: ,,"])
      ]
    ),
    Sample("GET / HTTP/1.0\r\n\r\n", [Message("GET", "/", fields: [], keepsAlive: false)]),
    Sample(
      "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", [Message("GET", "/", fields: ["Connection: Keep-Alive"])]),
    Sample(
      "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
      [
        Message("GET", "/", fields: ["Connection: keep-alive, close"], keepsAlive: false)
      ]
    ),
    Sample(
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
      [
        Message(
          "POST", "/", fields: ["Host: a", "Expect: 100-Continue", "Content-Length: 1"], body: "x",
          expectsContinue: true)
      ]
    ),
    // RFC 9110, section 10.1.1: ignored in HTTP/1.0.
    Sample(
      "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
      [
        Message("POST", "/", fields: ["Expect: 100-continue", "Content-Length: 1"], body: "x", keepsAlive: false)
      ]
    ),
    // Bodies.
    Sample(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
      [
        Message("POST", "/", fields: ["Host: a", "Content-Length: 0"])
      ]
    ),
    Sample(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0005\r\n\r\nhello",
      [
        Message("POST", "/", fields: ["Host: a", "Content-Length: 0005"], body: "hello")
      ]
    ),
    Sample(
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
      [
        Message("GET", "/", fields: ["Host: a", "Content-Length: 5"], body: "hello")
      ]
    ),
    Sample(chunked("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), [chunkedMessage("hello world")]),
    Sample(chunked("0\r\n\r\n"), [chunkedMessage("")]),
    Sample(chunked("0000000A\r\n0123456789\r\n000\r\n\r\n"), [chunkedMessage("0123456789")]),
    Sample(chunked("a;x\r\n0123456789\r\n1;y=\"z z\";b\r\n!\r\n0;q\r\n\r\n"), [chunkedMessage("0123456789!")]),
    Sample(chunked("1\r\nx\r\n0\r\nTrailer: t\r\nB:\r\n\r\n"), [chunkedMessage("x")]),
    Sample(chunked("2\r\n\r\n\r\n0\r\n\r\n"), [chunkedMessage("\r\n")]),
    Sample(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:CHUNKED\r\n\r\n0\r\n\r\n",
      [
        Message("POST", "/", fields: ["Host: a", "Transfer-Encoding: CHUNKED"])
      ]
    ),
    // One behind the other.
    Sample(
      chunked("3\r\nabc\r\n0\r\n\r\n") + "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"
        + "POST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi" + "GET /4 HTTP/1.0\r\n\r\n",
      [
        chunkedMessage("abc"), Message("GET", "/2", fields: ["Host: a"]),
        Message("POST", "/3", fields: ["Host: a", "Content-Length: 2"], body: "hi"),
        Message("GET", "/4", fields: [], keepsAlive: false),
      ]
    ),
    // At the limits.
    Sample(head(of: 1024), [Message("GET", "/" + String(repeating: "x", count: 997), fields: ["Host: a"])]),
    Sample(fields(8), [Message("GET", "/", fields: ["Host: a"] + Array(repeating: "A: b", count: 7))]),
    Sample(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4096\r\n\r\n" + String(repeating: "y", count: 4096),
      [
        Message(
          "POST", "/", fields: ["Host: a", "Content-Length: 4096"], body: String(repeating: "y", count: 4096))
      ]
    ),
    Sample(
      chunked(
        "f80\r\n" + String(repeating: "y", count: 3968) + "\r\n" + String(repeating: "1\r\nz\r\n", count: 128)
          + "0\r\n\r\n"),
      [chunkedMessage(String(repeating: "y", count: 3968) + String(repeating: "z", count: 128))]
    ),
  ]

  static let bad: [Sample<Int>] = [
    // The request line.
    Sample("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample(" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("\u{16}\u{03}\u{01}\u{02}\r\n", 400),
    Sample("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
    Sample("GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\nHost: a\n\n", 400),
    Sample("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", 400),
    Sample("GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET /\u{0} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET /\u{7f} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET /<a> HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET\r\nHost: a\r\n\r\n", 400),
    Sample("GET /\r\n", 400),
    Sample("GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    Sample("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET / http/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET / HTTP/1,1\r\nHost: a\r\n\r\n", 400),
    Sample("GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400),
    Sample("GET / HTTPS/1.1\r\nHost: a\r\n\r\n", 400),
    Sample("GET / HTTP/1.x\r\nHost: a\r\n\r\n", 400),
    Sample("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    Sample("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
    Sample("GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505),
    Sample("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    Sample(String(repeating: "M", count: 33) + " / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    // Fields.
    Sample("GET / HTTP/1.1\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX(: y\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX\u{e9}: y\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX: y\u{0}z\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX: y\nZ: z\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX: \u{7f}\r\n\r\n", 400),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n", 417),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, x\r\n\r\n", 417),
    // Where the message ends.
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nx", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\nx", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\nx", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999999999\r\n\r\n", 413),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4097\r\n\r\n", 413),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    Sample("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 501),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 501),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", 501),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", 501),
    Sample("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \u{0b}chunked\r\n\r\n", 400),
    // Chunks.
    Sample(chunked("\r\n"), 400),
    Sample(chunked("g\r\n"), 400),
    Sample(chunked("-1\r\n"), 400),
    Sample(chunked("0x1\r\nx\r\n0\r\n\r\n"), 400),
    Sample(chunked(" 1\r\nx\r\n0\r\n\r\n"), 400),
    Sample(chunked("1 \r\nx\r\n0\r\n\r\n"), 400),
    Sample(chunked("1\nx\r\n0\r\n\r\n"), 400),
    Sample(chunked("1\r\rx\r\n0\r\n\r\n"), 400),
    Sample(chunked("1;a\nx\r\n0\r\n\r\n"), 400),
    Sample(chunked("1;a\r\rx\r\n0\r\n\r\n"), 400),
    Sample(chunked("1;a\u{0}\r\nx\r\n0\r\n\r\n"), 400),
    Sample(chunked("1\r\nxy\r\n0\r\n\r\n"), 400),
    Sample(chunked("1\r\nx\n0\r\n\r\n"), 400),
    Sample(chunked("1\r\nx\r0\r\n\r\n"), 400),
    Sample(chunked("1\r\nx\r\n0\r\n\n"), 400),
    Sample(chunked("000000001\r\nx\r\n0\r\n\r\n"), 400),
    Sample(chunked("FFFFFFFF\r\n"), 413),
    Sample(chunked("1001\r\n"), 413),
    Sample(chunked("1000\r\n" + String(repeating: "x", count: 4096) + "\r\n1\r\n"), 413),
    Sample(chunked("0\r\n X: y\r\n\r\n"), 400),
    Sample(chunked("0\r\nX y\r\n\r\n"), 400),
    Sample(chunked("0\r\nX: y\u{0}\r\n\r\n"), 400),
    Sample(chunked("0\r\nX: y\nZ: z\r\n\r\n"), 400),
    Sample(chunked("0\r\n: y\r\n\r\n"), 400),
    Sample(chunked("1;" + String(repeating: "x", count: 8193)), 400),
    Sample(chunked("0\r\nX: " + String(repeating: "x", count: 8193)), 400),
    // Limits, kept even where the line never ends.
    Sample(head(of: 1025), 431),
    Sample(fields(9), 431),
    Sample(String(repeating: "M", count: 2000), 431),
    Sample("GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "x", count: 2000), 431),
    Sample("GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "A: b\r\n", count: 300), 431),
  ]

  // MARK: Parts of requests

  static func chunked(_ body: String) -> String {
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body
  }

  static func chunkedMessage(_ body: String) -> Message {
    Message("POST", "/", fields: ["Host: a", "Transfer-Encoding: chunked"], body: body)
  }

  static func head(of count: Int) -> String {
    "GET /" + String(repeating: "x", count: count - 27) + " HTTP/1.1\r\nHost: a\r\n\r\n"
  }

  static func fields(_ count: Int) -> String {
    "GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "A: b\r\n", count: count - 1) + "\r\n"
  }
}

/// A stream of bytes and what it is to be taken for.
struct Sample<Expected: Sendable>: Sendable, CustomTestStringConvertible {
  let bytes: [UInt8]
  let expected: Expected

  init(_ text: String, _ expected: Expected) { (bytes, self.expected) = (Array(text.utf8), expected) }

  /// The beginning of it, on one line.
  var testDescription: String { String(decoding: bytes.prefix(150), as: UTF8.self).debugDescription }
}
