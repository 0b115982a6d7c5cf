import Cryptography
import EventLoop
import HTTPServer

extension FormFields {
  private static let largestBody = 32_768

  /// What a browser sent with a form; nil where the request has none, or too large a one.
  @Loop
  init?(of request: HTTPRequest) async {
    guard (request.header("Content-Type") ?? "").lowercased().hasPrefix("application/x-www-form-urlencoded"),
      case .complete = await request.readBody(upTo: Self.largestBody)
    else { return nil }
    self.init(request.withBody { body in unsafe body.withUnsafeBytes { unsafe [UInt8]($0) } })
  }
}

extension HTTPRequest {
  /// The value of a cookie; nil where the browser sent none of that name.
  func cookie(_ name: String) -> String? {
    for pair in (header("Cookie") ?? "").split(separator: ";") {
      let pair = pair.drop { $0 == " " }
      if pair.hasPrefix("\(name)=") { return String(pair.dropFirst(name.count + 1)) }
    }
    return nil
  }
}

extension String {
  /// A secret of 32 bytes that nobody guesses, for cookies, forms and `state`.
  static func secret() throws(CryptographyError) -> String { Base64URL.encode(try SecureRandom.bytes(32)) }

  /// Whether both are the same, in a time that says nothing about where they differ.
  func isSecret(_ other: String?) -> Bool {
    guard let other else { return false }
    return SHA256.digest(of: Array(utf8)).matches(SHA256.digest(of: Array(other.utf8)))
  }
}
