import AccountEvents
import AppleID
import Cryptography
import JSON
import Testing

/// Signs whatever a test wants signed, well or badly, and verifies it: Apple's side and ours in a few lines.
enum Forge {
  static let keyID = "fh6Bs8C"
  static let key = make { try RSAPrivateKey(bitCount: 2048) }
  static let stranger = make { try RSAPrivateKey(bitCount: 2048) }
  static let keys = make { try keySet([jwk(keyID, key)]) }

  static let team = make { try #require(TeamID("A1B2C3D4E5")) }
  static let otherTeam = make { try #require(TeamID("Z9Y8X7W6V5")) }
  static let app = make { try #require(ClientID("com.example.app")) }
  static let web = make { try #require(ClientID("com.example.web")) }
  static let otherApp = make { try #require(ClientID("org.example.other")) }
  static let jti = "S25cB0PbHs6y97gYYmgydQ"
  static let subject = "000768.6166f031167141e695698239959f591a.1521"
  /// When the notification is issued, and the moment at which it is verified, a minute later.
  static let issue: Int64 = 1_657_617_092
  static let now = make { try #require(Timestamp(seconds: issue + 60)) }

  static let verifier = NotificationVerifier(
    issuer: "https://appleid.apple.com", teams: [app: team, web: team, otherApp: otherTeam],
    clockTolerance: .seconds(60))

  static let header: JSONValue = ["kid": .string(keyID), "alg": "RS256"]

  /// The claims of a good notification in Apple's order, with some replaced, removed (nil) or added.
  static func claims(_ changes: KeyValuePairs<String, JSONValue?> = [:]) -> JSONValue {
    changed(
      [
        "iss": "https://appleid.apple.com", "aud": "com.example.app", "exp": .integer(issue + 86_400),
        "iat": .integer(issue), "jti": .string(jti), "events": .string(text(event())),
      ], changes)
  }

  /// A good event, with some members replaced, removed (nil) or added.
  static func event(_ changes: KeyValuePairs<String, JSONValue?> = [:]) -> JSONValue {
    changed(
      ["type": "consent-revoked", "sub": .string(subject), "event_time": .integer((issue - 29) * 1000 + 12)], changes)
  }

  static func address(_ text: String) -> RelayAddress { make { try #require(RelayAddress(text)) } }

  static func text(_ value: JSONValue) -> String { String(decoding: value.bytes, as: UTF8.self) }

  /// A compact JWS of the given parts.
  static func jws(
    header: JSONValue = header, claims: JSONValue = claims(), key: RSAPrivateKey = key
  ) -> String {
    jws(header: text(header), claims: text(claims), key: key)
  }

  /// A compact JWS of parts that need not be JSON.
  static func jws(header: String, claims: String, key: RSAPrivateKey = key) -> String {
    let signed = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
    return signed + "." + Base64URL.encode(make { try key.signRS256(Array(signed.utf8)) })
  }

  /// The body of Apple's POST.
  static func body(_ jws: String) -> [UInt8] { (["payload": .string(jws)] as JSONValue).bytes }

  static func jwk(_ id: String, _ key: RSAPrivateKey) throws -> JSONValue {
    [
      "kty": "RSA", "kid": .string(id), "use": "sig", "alg": "RS256",
      "n": .string(Base64URL.encode(try key.modulus)), "e": .string(Base64URL.encode(try key.exponent)),
    ]
  }

  static func keySet(_ keys: [JSONValue]) throws -> AppleKeySet {
    let text = (["keys": .array(keys)] as JSONValue).bytes
    return try unsafe AppleKeySet(reading: text.span.bytes)
  }

  /// The verdict on a body.
  static func verify(_ body: [UInt8], at now: Timestamp = now, keys: AppleKeySet = keys) -> Verdict {
    unsafe verifier.verify(body.span.bytes, at: now, keys: keys)
  }

  /// The verdict on good parts but for those that are given.
  static func verify(
    header: JSONValue = header, claims: JSONValue = claims(), key: RSAPrivateKey = key, at now: Timestamp = now
  ) -> Verdict {
    verify(body(jws(header: header, claims: claims, key: key)), at: now)
  }

  static func changed(_ value: JSONValue, _ changes: KeyValuePairs<String, JSONValue?>) -> JSONValue {
    guard case .object(var members) = value else { preconditionFailure("not an object") }
    for (name, value) in changes {
      let place = members.firstIndex { $0.name == name }
      if let place { members.remove(at: place) }
      if let value { members.insert(JSONValue.Member(name, value), at: place ?? members.count) }
    }
    return .object(members)
  }

  static func make<Value>(_ body: () throws -> Value) -> Value {
    do { return try body() } catch { fatalError("\(error)") }
  }
}

extension Verdict {
  var refusal: Refusal? { if case .refused(let refusal) = self { refusal } else { nil } }

  var notification: VerifiedNotification? {
    if case .verified(let notification) = self { notification } else { nil }
  }

  var unknownKey: KeyID? { if case .unknownKey(let id) = self { id } else { nil } }
}

extension VerifiedNotification {
  /// Its events that are known.
  var known: [AccountEvent] {
    events.compactMap { if case .known(let event) = $0 { event } else { nil } }
  }

  /// Its events that are kept aside.
  var quarantined: [QuarantinedEvent] {
    events.compactMap { if case .quarantined(let event) = $0 { event } else { nil } }
  }
}
