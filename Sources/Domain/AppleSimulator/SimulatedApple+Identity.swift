import AccountEvents
import Cryptography

extension SimulatedApple {
  /// Who signed in, in the words that Apple gives the app: a JWS, signed with the next key.
  func identityToken(of tokens: Authorizations.Tokens, for client: String) throws(CryptographyError) -> String {
    let key = nextKey()
    let issuedAt = clock().milliseconds / 1000
    // OpenID Connect Core §3.1.3.6: half of the access token's digest.
    let hash = Base64URL.encode(Array(SHA256.digest(of: [UInt8](tokens.access.utf8)).bytes[..<16]))
    let header = Members(["kid": quoted(key.kid), "alg": quoted("RS256")])
    let claims = Members([
      "iss": quoted(issuer), "aud": quoted(client), "exp": String(issuedAt + 86_400), "iat": String(issuedAt),
      "sub": quoted(tokens.person.subject), "at_hash": quoted(hash), "email": quoted(tokens.person.address),
      "email_verified": "true", "is_private_email": "true", "auth_time": String(issuedAt), "nonce_supported": "true",
    ])
    let input =
      Base64URL.encode([UInt8](header.json.utf8)) + "." + Base64URL.encode([UInt8](claims.json.utf8))
    return input + "." + Base64URL.encode(try key.privateKey.signRS256([UInt8](input.utf8)))
  }
}
