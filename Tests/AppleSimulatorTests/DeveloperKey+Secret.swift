import AccountEvents
import AppleSimulator
import Cryptography
import JSON

extension DeveloperKey {
  /// A client secret that is good for five minutes from `now` on, with some claims changed or, with null, left out. `KID` in
  /// the header is the key's ID; `other` is who signs in the key's place.
  func secret(
    of team: String, for client: String, at now: Timestamp, _ changes: [String: JSONValue] = [:],
    header: String = #"{"alg":"ES256","kid":"KID"}"#, signedBy other: String? = nil
  ) throws -> String {
    let issued = now.milliseconds / 1000
    var claims: [String: JSONValue] = [
      "iss": .string(team), "iat": .integer(issued), "exp": .integer(issued + 300),
      "aud": "https://appleid.apple.com", "sub": .string(client),
    ]
    claims.merge(changes) { $1 }
    let body = JSONValue.object(claims.filter { $0.value != .null }.map { JSONValue.Member($0.key, $0.value) }).bytes
    let input = Base64URL.encode(Array(header.replacing("KID", with: id).utf8)) + "." + Base64URL.encode(body)
    return input + "." + Base64URL.encode(try P256PrivateKey(pem: other ?? privateKeyPEM).signES256(Array(input.utf8)))
  }
}
