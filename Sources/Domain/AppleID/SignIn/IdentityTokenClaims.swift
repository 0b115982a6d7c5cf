import JSON

/// The claims of an identity token as they were written: read once the signature holds, and not yet judged.
struct IdentityTokenClaims: ~Copyable {
  private(set) var issuer: String?
  private(set) var audiences: [String] = []
  /// Seconds since 1970, as are all its times.
  private(set) var expiry: Int64?
  private(set) var issue: Int64?
  private(set) var authentication: Int64?
  private(set) var subject: String?
  private(set) var nonce: String?
  private(set) var isNonceSupported = false
  private(set) var accessTokenHash: String?
  private(set) var codeHash: String?
  private(set) var email: String?
  private(set) var isEmailVerified = false
  private(set) var isPrivateEmail = false
  private(set) var realUserStatus: Int64?
  private(set) var transferSubject: String?
  private(set) var organization: String?
  private(set) var scopes: [String] = []
  /// Whether it tells of events, as a notification does.
  private(set) var hasEvents = false

  private static let limits = JSONLimits(bytes: UnverifiedIdentityToken.maximumSize, depth: 16, members: 256)

  init(reading payload: [UInt8]) throws(JSONError) {
    try unsafe JSONReader.read(payload.span.bytes, Self.limits) { reader throws(JSONError) in
      try reader.readObject { name, value throws(JSONError) in try read(name, &value) }
    }
  }

  private mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError) {
    switch name {
    case "iss": issuer = try value.readString()
    case "aud": audiences = try value.readStrings()
    case "exp": expiry = try value.readInteger()
    case "iat": issue = try value.readInteger()
    case "auth_time": authentication = try value.readInteger()
    case "sub": subject = try value.readString()
    case "nonce": nonce = try value.readString()
    case "nonce_supported": isNonceSupported = try value.readWrittenBoolean()
    case "at_hash": accessTokenHash = try value.readString()
    case "c_hash": codeHash = try value.readString()
    case "email": email = try value.readString()
    case "email_verified": isEmailVerified = try value.readWrittenBoolean()
    case "is_private_email": isPrivateEmail = try value.readWrittenBoolean()
    case "real_user_status": realUserStatus = try value.readInteger()
    case "transfer_sub": transferSubject = try value.readString()
    case "org_id": organization = try value.readString()
    case "scopes": scopes = try value.readStrings()
    case "events": hasEvents = true
    default: break
    }
  }
}

extension JSONReader {
  /// One string, or several (RFC 7519 §4.1.3).
  mutating func readStrings() throws(JSONError) -> [String] {
    guard try kind == .array else { return [try readString()] }
    var strings: [String] = []
    try readArray { element throws(JSONError) in strings.append(try element.readString()) }
    return strings
  }

  /// A boolean, or the string `"true"` or `"false"`, as which Apple wrote them until February 2024.
  mutating func readWrittenBoolean() throws(JSONError) -> Bool {
    guard try kind == .string else { return try readBoolean() }
    switch try readString() {
    case "true": return true
    case "false": return false
    default: throw JSONError(.unexpectedKind, at: 0)
    }
  }
}
