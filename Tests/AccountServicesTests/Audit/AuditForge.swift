import AccountEvents
import AppleID
import Cryptography
import Testing

/// Signs notifications as Apple does, for events of the tests.
enum AuditForge {
  static let issuer = "https://appleid.apple.com"
  static let key = make { try RSAPrivateKey(bitCount: 2048) }
  static let stranger = make { try RSAPrivateKey(bitCount: 2048) }

  /// The key as it stands on its topic.
  static func signingKey(_ key: RSAPrivateKey = key, named name: String = "fh6Bs8C") throws -> AppleSigningKey {
    let (id, modulus) = (try #require(KeyID(name)), Base64URL.encode(try key.modulus))
    return try #require(AppleSigningKey(id: id, modulus: modulus, firstSeen: AuditSamples.issuedAt))
  }

  /// A notification that contains the event.
  static func jws(_ event: AccountEvent, by key: RSAPrivateKey = key, named name: String = "fh6Bs8C") throws -> [UInt8]
  {
    let inner =
      #"{"type":"\#(event.kind.name)","sub":"\#(event.subject.text)","event_time":\#(event.occurredAt.milliseconds)}"#
    let issue = event.issuedAt.milliseconds / 1000
    let claims =
      #"{"iss":"\#(issuer)","aud":"\#(event.audience)","exp":\#(issue + 86_400),"iat":\#(issue),"#
      + #""jti":"\#(event.id)","events":\#(inner)}"#
    let header = #"{"kid":"\#(name)","alg":"RS256"}"#
    let signed = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
    return Array("\(signed).\(Base64URL.encode(try key.signRS256(Array(signed.utf8))))".utf8)
  }

  /// A ring with Apple's key alone.
  static func ring() throws -> SigningKeyRing {
    var ring = SigningKeyRing()
    ring.add(try signingKey())
    return ring
  }

  private static func make<Value>(_ body: () throws -> Value) -> Value {
    do { return try body() } catch { fatalError("\(error)") }
  }
}
