import AccountEvents
import JSON

/// The header of a JWS as Apple signs them: nothing in it decides anything but which of Apple's keys to try.
///
/// The algorithm belongs to the key, so the header may only repeat it. Members that we do not know are ignored, as
/// RFC 7515 §4 demands; those that would change what a signature means are refused.
struct JWSHeader {
  /// The key that the sender claims to have signed with.
  let keyID: KeyID

  private static let limits = JSONLimits(bytes: 1024, depth: 4, members: 16)

  /// Reads a header. `types`: what `typ` may be beside missing, in lowercase.
  init(reading text: [UInt8], types: [String]) throws(Refusal) {
    var algorithm: String?, keyID: String?, type: String?
    var isCritical = false, bringsKey = false
    do {
      try unsafe JSONReader.read(text.span.bytes, Self.limits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          switch name {
          case "alg": algorithm = try value.readString()
          case "kid": keyID = try value.readString()
          case "typ": type = try value.readString()
          case "crit": isCritical = true
          case "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256": bringsKey = true
          default: break
          }
        }
      }
    } catch {
      throw .malformedHeader
    }
    if isCritical { throw .criticalHeader }
    if bringsKey { throw .keyInHeader }
    guard algorithm == "RS256" else { throw .wrongAlgorithm }
    if let type, !types.contains(type.lowercased()) { throw .wrongType }
    guard let keyID = keyID.flatMap(KeyID.init) else { throw .malformedKeyID }
    self.keyID = keyID
  }
}
