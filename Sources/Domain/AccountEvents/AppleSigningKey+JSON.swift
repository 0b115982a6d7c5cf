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
    let members = try Members(of: value)
    func require(_ isRight: Bool, _ name: String) throws(EventDecodingError) {
      _ = try members.required(isRight ? true : nil, name)
    }
    try require(members.type == "RSA", "kty")
    try require(members.use == "sig", "use")
    try require(members.algorithm == "RS256", "alg")
    try require(members.exponent == "AQAB", "e")
    self = try members.required(
      AppleSigningKey(
        id: try members.required(members.id, "kid"), modulus: try members.required(members.modulus, "n"),
        firstSeen: try members.required(members.firstSeen, "first_seen")), "n")
  }
}

private struct Members: RecordMembers {
  var id: KeyID?
  var type, use, algorithm, modulus, exponent: String?
  var firstSeen: Timestamp?

  mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError) {
    switch name {
    case "kid": id = KeyID(try value.readString())
    case "kty": type = try value.readString()
    case "use": use = try value.readString()
    case "alg": algorithm = try value.readString()
    case "n": modulus = try value.readString()
    case "e": exponent = try value.readString()
    case "first_seen": firstSeen = Timestamp(milliseconds: try value.readInteger())
    default: break
    }
  }
}
