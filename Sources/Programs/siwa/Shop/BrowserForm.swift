import Cryptography
import EventLoop
import HTTPServer

/// What a browser sent with a form: names and values (`application/x-www-form-urlencoded`), each name once.
struct BrowserForm {
  private static let largestBody = 32_768
  private var values: [String: String] = [:]

  /// The value of a field; nil where it is missing.
  subscript(name: String) -> String? { values[name] }

  /// Reads the body of the request; nil where it is no such form, or too large.
  @Loop
  init?(of request: HTTPRequest) async {
    guard (request.header("Content-Type") ?? "").lowercased().hasPrefix("application/x-www-form-urlencoded"),
      case .complete = await request.readBody(upTo: Self.largestBody)
    else { return nil }
    self.init(request.withBody { body in unsafe body.withUnsafeBytes { unsafe [UInt8]($0) } })
  }

  /// Nil where a name comes twice, an escape is none, or text is no UTF-8.
  init?(_ body: [UInt8]) {
    for field in body.split(separator: UInt8(ascii: "&")) {
      let parts = field.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decode(parts[0]), let value = Self.decode(parts.count > 1 ? parts[1] : []),
        values.updateValue(value, forKey: name) == nil
      else { return nil }
    }
  }

  private static func decode(_ text: ArraySlice<UInt8>) -> String? {
    var bytes: [UInt8] = [], rest = text
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
      case UInt8(ascii: "%"):
        let digits = rest.prefix(2)
        guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
          let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
        else { return nil }
        bytes.append(value)
        rest = rest.dropFirst(2)
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
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
