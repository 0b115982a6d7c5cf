import JSON

/// The claims of a notification as they were written: read once the signature holds, and not yet judged.
struct NotificationClaims: ~Copyable {
  private(set) var issuer: String?
  private(set) var audiences: [String] = []
  /// Seconds since 1970.
  private(set) var expiry: Int64?
  /// Seconds since 1970.
  private(set) var issue: Int64?
  private(set) var id: String?
  private(set) var events: Events?
  /// Whether there is a claim that only tokens about a signed-in user have.
  private(set) var isAboutSignIn = false

  /// The claim `events`, in either of its forms.
  enum Events {
    /// A string, as Apple sends it: JSON that was written down as text, here without its escapes.
    case text([UInt8])
    /// Any other value: where it stands in the payload.
    case value(Range<Int>)
  }

  private static let limits = JSONLimits(bytes: UnverifiedNotification.maximumBodySize, depth: 64, members: 256)

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
    case "jti": id = try value.readString()
    case "events": events = try value.kind == .string ? .text(value.readStringBytes()) : .value(value.readRaw())
    case "sub", "nonce", "at_hash", "c_hash": isAboutSignIn = true
    default: break
    }
  }
}
