package import AccountEvents
import Cryptography
package import EventLoop

/// The client secrets in use: one for each client, made when it is needed and renewed before it ends.
@Loop
package final class ClientSecrets {
  private let keys: [ClientID: TeamKey]
  private let audience: String
  private let lifetime: Duration
  private let now: @Sendable () -> Timestamp
  private var secrets: [ClientID: ClientSecret] = [:]

  /// Secrets for the clients in `keys`, each signed by the key of its team, that live for `lifetime`.
  package nonisolated init(
    keys: [ClientID: TeamKey], audience: String, lifetime: Duration, now: @escaping @Sendable () -> Timestamp
  ) {
    (self.keys, self.audience, self.lifetime, self.now) = (keys, audience, lifetime, now)
  }

  /// The secret of a client that is good for a while yet. Throws `.noKey` for a client whose team's key we do not have.
  func secret(of client: ClientID) throws(AppleTokenError) -> ClientSecret {
    let now = now()
    // Before its beginning: the clock was set back, and Apple would find it issued in the future.
    if let secret = secrets[client], secret.issuedAt <= now, now + lifetime / 5 < secret.expiresAt { return secret }
    guard let key = keys[client] else {
      throw AppleTokenError(.noKey, "no key of a team is configured for \(client)")
    }
    do {
      let secret = try ClientSecret(for: client, by: key, audience: audience, at: now, lifetime: lifetime)
      secrets[client] = secret
      return secret
    } catch {
      throw AppleTokenError(.unsigned, "no client secret for \(client): \(error)")
    }
  }

  /// Apple does not accept the secret: the next one is a new one, by the clock of then.
  func discardSecret(of client: ClientID) { secrets[client] = nil }

  /// What an operator looks at when Apple does not accept the secret of a client.
  func origin(of client: ClientID) -> String {
    guard let key = keys[client] else { return "\(client)" }
    return "\(client), signed by key \(key.id) of team \(key.team)"
  }
}
