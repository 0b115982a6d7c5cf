import JSON

extension AppleSigningKey {
  /// The value of the key's record, described by `schemas/signing-key.v1.json`: a JWK (RFC 7517), and when it was seen.
  var json: [UInt8] {
    var json = Array(#"{"kty":"RSA","kid":""#.utf8)
    json.append(contentsOf: id.text.utf8)
    json.append(contentsOf: #"","use":"sig","alg":"RS256","n":""#.utf8)
    json.append(contentsOf: modulus.utf8)
    json.append(contentsOf: #"","e":"AQAB","first_seen":"#.utf8)
    JSON.append(firstSeen.milliseconds, to: &json)
    json.append(UInt8(ascii: "}"))
    return json
  }

  /// Reads the value of a record on `Topic.signingKeys`. Members that this version does not know are passed over.
  public init(decoding value: [UInt8]) throws(EventDecodingError) {
    let members: Members
    do throws(JSONError) {
      members = try unsafe Members(reading: value.span.bytes)
    } catch {
      throw EventDecodingError(reading: error)
    }
    func require(_ isRight: Bool, _ name: String) throws(EventDecodingError) {
      guard isRight else { throw EventDecodingError(code: .malformedMember, detail: name) }
    }
    try require(members.type == "RSA", "kty")
    try require(members.use == "sig", "use")
    try require(members.algorithm == "RS256", "alg")
    try require(members.exponent == "AQAB", "e")
    guard let id = members.id.flatMap(KeyID.init) else {
      throw EventDecodingError(code: .malformedMember, detail: "kid")
    }
    guard let firstSeen = members.firstSeen.flatMap(Timestamp.init(milliseconds:)) else {
      throw EventDecodingError(code: .malformedMember, detail: "first_seen")
    }
    guard let modulus = members.modulus, let key = AppleSigningKey(id: id, modulus: modulus, firstSeen: firstSeen)
    else { throw EventDecodingError(code: .malformedMember, detail: "n") }
    self = key
  }
}

/// The members as they were written; nil where one is missing.
private struct Members {
  var id, type, use, algorithm, modulus, exponent: String?
  var firstSeen: Int64?

  /// Far more than a key has, so that later versions may add to it.
  private static let limits = JSONLimits(bytes: 65_536, depth: 16, members: 64)

  init(reading value: RawSpan) throws(JSONError) {
    self = try JSONReader.read(value, Self.limits) { reader throws(JSONError) in
      guard try reader.kind == .object else { throw JSONError(.malformed, at: reader.offset) }
      var members = Members()
      try reader.readObject { name, value throws(JSONError) in
        switch name {
        case "kid": members.id = try value.readString()
        case "kty": members.type = try value.readString()
        case "use": members.use = try value.readString()
        case "alg": members.algorithm = try value.readString()
        case "n": members.modulus = try value.readString()
        case "e": members.exponent = try value.readString()
        case "first_seen": members.firstSeen = try value.readInteger()
        default: break
        }
      }
      return members
    }
  }

  private init() {}
}
