import AccountEvents
import Cryptography
import JSON

/// The teams that Apple knows, each with its keys and apps.
struct Developers: Sendable {
  /// What a client secret says that a key has signed.
  private struct Proof: Sendable {
    let key, team, client, audience: String
    let issued, end: Int64
  }

  private var keys: [String: (team: String, key: P256PublicKey)] = [:]
  private var teams: [String: String] = [:]
  /// What client secrets say that were verified, by their text.
  private var proofs: [String: Proof] = [:]
  /// Where each app may have people sent back to.
  private var redirectURIs: [String: Set<String>] = [:]

  /// Gives a team a new key, beside those that it has, and the apps.
  mutating func enroll(_ team: String, clients: [String]) throws(CryptographyError) -> DeveloperKey {
    let key = try P256PrivateKey()
    let alphabet = Array("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")
    let id = String(try SecureRandom.bytes(10).map { alphabet[Int($0) % alphabet.count] })
    keys[id] = (team, try key.publicKey)
    for client in clients { teams[client] = team }
    return DeveloperKey(id: id, privateKeyPEM: try key.pem())
  }

  /// The team of an app; nil of one that nobody made known.
  func team(of client: String) -> String? { teams[client] }

  /// Has the app's sign-ins end at these addresses, beside those that it has.
  mutating func register(_ uris: [String], for client: String) { redirectURIs[client, default: []].formUnion(uris) }

  /// Whether the app's sign-ins may end at exactly this address.
  func isRegistered(_ uri: String, for client: String) -> Bool { redirectURIs[client]?.contains(uri) == true }

  /// Whether a team has the key.
  func has(_ id: String) -> Bool { keys[id] != nil }

  /// Withdraws a key: nothing that it signed is worth anything from now on.
  mutating func withdraw(_ id: String) {
    keys[id] = nil
    proofs = proofs.filter { $0.value.key != id }
  }

  /// The team that `secret` proves to be asking in the name of `client`: all of it must be right, but whether the app is
  /// the team's. A secret that was seen before is not verified once more.
  mutating func team(
    behind secret: String, of client: String, audience: String, at now: Timestamp
  ) -> String? {
    guard let proof = proofs[secret] ?? proof(of: secret) else { return nil }
    if proofs.count >= 256 { proofs = [:] }
    proofs[secret] = proof
    let time = now.milliseconds / 1000
    guard proof.client == client, proof.audience == audience, proof.issued <= time, time < proof.end,
      proof.end <= proof.issued + 15_777_000
    else { return nil }
    return proof.team
  }

  private func proof(of secret: String) -> Proof? {
    let parts = secret.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, let header = Self.claims(parts[0]), let claims = Self.claims(parts[1]),
      let signature = Base64URL.decode(parts[2])
    else { return nil }
    guard header.texts["alg"] == "ES256", let kid = header.texts["kid"], let key = keys[kid],
      key.key.verifiesES256(signature, of: [UInt8]("\(parts[0]).\(parts[1])".utf8))
    else { return nil }
    guard key.team == claims.texts["iss"], let client = claims.texts["sub"], let audience = claims.texts["aud"],
      let issued = claims.numbers["iat"], let end = claims.numbers["exp"]
    else { return nil }
    return Proof(key: kid, team: key.team, client: client, audience: audience, issued: issued, end: end)
  }

  /// The members of a part of a JWS that are texts or numbers; nil if it is no such part.
  private static func claims(_ part: String) -> (texts: [String: String], numbers: [String: Int64])? {
    guard let bytes = Base64URL.decode(part) else { return nil }
    var texts: [String: String] = [:], numbers: [String: Int64] = [:]
    do {
      try unsafe JSONReader.read(bytes.span.bytes, JSONLimits(bytes: 4096, depth: 4, members: 16)) {
        reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          switch try value.kind {
          case .string: texts[name] = try value.readString()
          case .number: numbers[name] = try value.readInteger()
          default: break
          }
        }
      }
    } catch {
      return nil
    }
    return (texts, numbers)
  }
}
