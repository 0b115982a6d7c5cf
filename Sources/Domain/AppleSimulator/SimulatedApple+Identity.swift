import AccountEvents
import Cryptography

extension SimulatedApple {
  /// Who signed in, in the words that Apple gives the app: a JWS, signed with the next key.
  func identityToken(of tokens: Authorizations.Tokens, for client: String) throws(CryptographyError) -> String {
    try identityToken(
      of: tokens.person, for: client, nonce: tokens.nonce, binding: ("at_hash", tokens.access))
  }

  /// The same beside a code, or a token, whose hash is in the named claim.
  func identityToken(
    of person: Person, for client: String, nonce: String?, binding: (claim: String, text: String)
  ) throws(CryptographyError) -> String {
    let transferIdentifier = transferIdentifier(of: person, to: client)
    let person = known(person, to: client)
    let key = nextKey()
    let issuedAt = clock().milliseconds / 1000
    // OpenID Connect Core §3.1.3.6 and §3.3.2.11: half of the digest.
    let hash = Base64URL.encode(Array(SHA256.digest(of: [UInt8](binding.text.utf8)).bytes[..<16]))
    let header = Members(["kid": quoted(key.kid), "alg": quoted("RS256")])
    var claims = Members([
      "iss": quoted(issuer), "aud": quoted(client), "exp": String(issuedAt + 86_400), "iat": String(issuedAt),
      "sub": quoted(person.subject),
    ])
    if let nonce { claims["nonce"] = quoted(nonce) }
    claims[binding.claim] = quoted(hash)
    if person.tellsAddress {
      claims["email"] = quoted(person.address)
      claims["email_verified"] = "true"
      // Left out rather than false.
      if person.hidesAddress { claims["is_private_email"] = "true" }
    }
    if let transferIdentifier { claims["transfer_sub"] = quoted(transferIdentifier) }
    claims["auth_time"] = String(issuedAt)
    claims["nonce_supported"] = "true"
    let input =
      Base64URL.encode([UInt8](header.json.utf8)) + "." + Base64URL.encode([UInt8](claims.json.utf8))
    return input + "." + Base64URL.encode(try key.privateKey.signRS256([UInt8](input.utf8)))
  }
}
