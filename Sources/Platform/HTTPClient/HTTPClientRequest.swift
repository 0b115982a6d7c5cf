/// One request, with the two limits that every request must have.
public struct HTTPClientRequest: Sendable {
  /// What is asked for.
  public enum Method: Sendable, Hashable {
    /// Reads.
    case get
    /// Hands something over.
    case post
    /// Has something deleted.
    case delete
  }

  /// What is asked for.
  public var method: Method
  /// Who is asked.
  public var url: HTTPClientURL
  /// Headers beside those that the client sets itself: `Host`, `User-Agent`, and those of framing and connection.
  public var headers: [(name: String, value: String)]
  /// The body of a POST.
  public var body: [UInt8]
  /// Whether the server may get it twice. A kept connection may die before the first byte of an answer; libcurl then
  /// sends the request once more, on a new one. Where that must not be, the request fails with `.interrupted`; so that
  /// this happens seldom, it goes over no connection that was idle for more than 5 seconds, and over a new one where it
  /// has no body.
  public var isRepeatable: Bool
  /// How long everything may take, from the call to the answer's last byte, waiting for a free connection included.
  public var deadline: Duration
  /// How many bytes the answer's body may have: beyond it the request fails with `.tooLarge`.
  public var maximumBodySize: Int

  /// A request for the body behind an address.
  public static func get(
    _ url: HTTPClientURL, headers: [(name: String, value: String)] = [], within deadline: Duration,
    maximumBodySize: Int
  ) -> HTTPClientRequest {
    HTTPClientRequest(
      method: .get, url: url, headers: headers, body: [], isRepeatable: true, deadline: deadline,
      maximumBodySize: maximumBodySize)
  }

  /// A request that hands `body` over.
  public static func post(
    _ body: [UInt8], to url: HTTPClientURL, headers: [(name: String, value: String)], isRepeatable: Bool,
    within deadline: Duration, maximumBodySize: Int
  ) -> HTTPClientRequest {
    HTTPClientRequest(
      method: .post, url: url, headers: headers, body: body, isRepeatable: isRepeatable, deadline: deadline,
      maximumBodySize: maximumBodySize)
  }

  /// A request that has what is behind an address deleted.
  public static func delete(
    _ url: HTTPClientURL, headers: [(name: String, value: String)], isRepeatable: Bool, within deadline: Duration,
    maximumBodySize: Int
  ) -> HTTPClientRequest {
    HTTPClientRequest(
      method: .delete, url: url, headers: headers, body: [], isRepeatable: isRepeatable, deadline: deadline,
      maximumBodySize: maximumBodySize)
  }

  /// A request that hands over a form (`application/x-www-form-urlencoded`): names and values, whatever is in them.
  public static func post(
    form: [(name: String, value: String)], to url: HTTPClientURL, headers: [(name: String, value: String)],
    isRepeatable: Bool, within deadline: Duration, maximumBodySize: Int
  ) -> HTTPClientRequest {
    var body: [UInt8] = []
    for (name, value) in form {
      if !body.isEmpty { body.append(UInt8(ascii: "&")) }
      appendFormText(name, to: &body)
      body.append(UInt8(ascii: "="))
      appendFormText(value, to: &body)
    }
    return post(
      body, to: url, headers: [("Content-Type", "application/x-www-form-urlencoded")] + headers,
      isRepeatable: isRepeatable, within: deadline, maximumBodySize: maximumBodySize)
  }

  /// The percent-encoding of the URL standard, section 1.3, with the set for forms: letters, digits and `*-._` stay, a
  /// blank becomes `+`.
  private static func appendFormText(_ text: String, to body: inout [UInt8]) {
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "*"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"):
        body.append(byte)
      case UInt8(ascii: " "): body.append(UInt8(ascii: "+"))
      default: body += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
  }

  /// Headers that are the client's: a second one beside its own would make a message that two readers read differently.
  private static let reserved: Set<String> = [
    "accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade", "user-agent",
  ]

  /// What is wrong with a header, if anything is: a value may come from outside, and must not break out of its line.
  func faultOfHeaders() -> String? {
    for (name, value) in headers {
      guard !name.isEmpty, name.utf8.allSatisfy(Self.isTokenByte) else { return "a header's name is malformed" }
      if Self.reserved.contains(name.lowercased()) { return "the header \(name) is set by the client itself" }
      guard Self.isFieldValue(value) else { return "the value of the header \(name) is malformed" }
    }
    return nil
  }

  /// Whether the text can stand in a header: printable ASCII and tabs, no blank at the ends.
  static func isFieldValue(_ text: String) -> Bool {
    let bytes = text.utf8
    guard bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7f || $0 == 0x09 }) else { return false }
    return bytes.first != 0x20 && bytes.first != 0x09 && bytes.last != 0x20 && bytes.last != 0x09
  }

  /// RFC 9110, section 5.6.2.
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}
