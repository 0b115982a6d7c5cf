package import AccountEvents
package import Cryptography
import JSON

/// What proves to Apple that a request comes from the team of a client: a JWT, signed by the team (ES256).
package struct ClientSecret: ConfidentialText {
  /// The longest lifetime that Apple accepts.
  package static let longestLifetime = Duration.seconds(15_777_000)

  /// The JWS in compact form.
  package let text: String
  /// The key that signed it.
  package let key: KeyID
  /// From when on it holds.
  package let issuedAt: Timestamp
  /// Until when it holds.
  package let expiresAt: Timestamp

  /// A secret for `client`, which must be one of the key's team, in whole seconds.
  ///
  /// - Parameters:
  ///   - audience: Apple's name as an issuer.
  ///   - lifetime: At most `longestLifetime`.
  package init(
    for client: ClientID, by key: TeamKey, audience: String, at now: Timestamp, lifetime: Duration
  ) throws(CryptographyError) {
    precondition(.seconds(1)...Self.longestLifetime ~= lifetime, "a lifetime that Apple refuses")
    let issuedAt = now.milliseconds / 1000
    let expiresAt = issuedAt + lifetime.components.seconds
    let header: JSONValue = ["alg": "ES256", "kid": .string(key.id.text)]
    let claims: JSONValue = [
      "iss": .string(key.team.text), "iat": .integer(issuedAt), "exp": .integer(expiresAt),
      "aud": .string(audience), "sub": .string(client.text),
    ]
    let input = Base64URL.encode(header.bytes) + "." + Base64URL.encode(claims.bytes)
    text = input + "." + Base64URL.encode(try key.privateKey.signES256([UInt8](input.utf8)))
    self.key = key.id
    self.issuedAt = now
    self.expiresAt = now + lifetime
  }
}
