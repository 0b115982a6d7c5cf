import JSON

/// An error as OAuth 2.0 writes it (RFC 6749 §5.2): `{"error":"…","error_description":"…"}`.
struct OAuthRefusal: Equatable {
  /// The reason in Apple's spelling.
  private let error: String
  /// What Apple says besides, if it does.
  private let explanation: String?

  private static let limits = JSONLimits(bytes: 65_536, depth: 8, members: 32)

  /// Reads the body of an answer; members that nobody knows are nobody's business.
  init(reading body: [UInt8]) throws(JSONError) {
    var error: String?, explanation: String?
    try unsafe JSONReader.read(body.span.bytes, Self.limits) { reader throws(JSONError) in
      try reader.readObject { name, value throws(JSONError) in
        switch name {
        case "error": error = try value.readString()
        case "error_description": if try value.kind == .string { explanation = try value.readString() }
        default: break
        }
      }
    }
    guard let error else { throw JSONError(.unexpectedKind, at: 0) }
    (self.error, self.explanation) = (error, explanation)
  }

  /// Which of the reasons it is.
  var code: AppleTokenError.Code {
    switch error {
    case "invalid_client": .invalidClient
    case "unauthorized_client": .unauthorizedClient
    case "invalid_request": .invalidRequest
    case "invalid_grant": .invalidGrant
    case "unsupported_grant_type": .unsupportedGrantType
    case "invalid_scope": .invalidScope
    case "invalid_token": .invalidToken
    default: .unknownError
    }
  }

  /// The reason for a log. It is a word; anything else in its place could be whatever was sent.
  var reason: String {
    let isWord = 1...32 ~= error.utf8.count && error.utf8.allSatisfy { 0x61...0x7a ~= $0 || $0 == 0x5f }
    return isWord ? error : "a reason that is no word"
  }

  /// What Apple says, for a log: bounded, printable, and nothing that repeats one of the `secrets`.
  func words(hiding secrets: [String]) -> String {
    guard let explanation, !secrets.contains(where: { explanation.contains($0) }) else { return reason }
    let printable = explanation.utf8.prefix(200).map { 0x20..<0x7f ~= $0 ? $0 : UInt8(ascii: "?") }
    return "\(reason): \(String(decoding: printable, as: UTF8.self))"
  }
}
