import CLibcurl
import EventLoop

/// An address that the client may ask: `https://…`, or `http://…` on loopback, and nothing else.
///
/// libcurl itself takes the text apart, so what was judged here is what it will connect to.
public struct HTTPClientURL: Sendable, Hashable, CustomStringConvertible {
  /// Whole addresses longer than this are refused.
  public static let maximumLength = 2048

  /// The address as libcurl normalised it. Its query may hold secrets: `description` leaves it out.
  public let text: String
  /// The host: a name, an IPv4 address, or an IPv6 address in brackets.
  public let host: String
  /// Whether it goes over TLS; where it does not, the host is this machine's loopback.
  public let isEncrypted: Bool
  /// Whether the host is this machine's loopback.
  public let isLoopback: Bool
  private let path: String
  /// With its colon; empty where the scheme says it.
  private let port: String

  /// Reads an absolute address; nil for anything that the client would not ask: another scheme, plain HTTP to another
  /// host than loopback, a user name or password, a fragment, spaces or bytes that are not ASCII.
  public init?(_ text: String) {
    guard text.utf8.count <= Self.maximumLength, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else { return nil }
    // libcurl is lenient about the slashes, and would find a host in "https:///path".
    let afterScheme = text.drop { $0 != ":" }
    guard afterScheme.hasPrefix("://"), !afterScheme.hasPrefix(":///") else { return nil }
    guard let parts = unsafe curl_url() else { return nil }
    defer { unsafe curl_url_cleanup(parts) }
    guard unsafe curl_url_set(parts, CURLUPART_URL, text, 0) == CURLUE_OK else { return nil }
    func part(_ name: CURLUPart) -> String? {
      var value: UnsafeMutablePointer<CChar>?
      guard unsafe curl_url_get(parts, name, &value, 0) == CURLUE_OK, let value = unsafe value else { return nil }
      defer { unsafe curl_free(value) }
      return unsafe String(cString: value)
    }
    guard let scheme = part(CURLUPART_SCHEME), let host = part(CURLUPART_HOST), let path = part(CURLUPART_PATH),
      let whole = part(CURLUPART_URL),
      part(CURLUPART_USER) == nil, part(CURLUPART_PASSWORD) == nil, part(CURLUPART_FRAGMENT) == nil
    else { return nil }
    isLoopback = Self.isLoopback(host)
    switch scheme {
    case "https": isEncrypted = true
    case "http" where isLoopback: isEncrypted = false
    default: return nil
    }
    self.text = whole
    self.host = host
    self.path = path
    port = part(CURLUPART_PORT).map { ":\($0)" } ?? ""
  }

  /// The address without its query, for messages.
  public var description: String { "\(isEncrypted ? "https" : "http")://\(host)\(port)\(path)" }

  private static func isLoopback(_ host: String) -> Bool {
    // libcurl never asks a name server for "localhost".
    host.lowercased() == "localhost" || SocketAddress("\(host):0")?.isLoopback == true
  }
}
