package import AccountEvents
import Cryptography
package import EventLoop

/// The client secrets in use: one for each client, made when it is needed and renewed before it ends.
///
/// A team may have two keys, as while one replaces the other: the first signs until Apple refuses it and accepts the
/// second, and the other way round from then on. Each client has a turn of its own, as a key at Apple is one of an app.
@Loop
package final class ClientSecrets {
  private let keys: [ClientID: [TeamKey]]
  private let audience: String
  private let lifetime: Duration
  private let now: @Sendable () -> Timestamp
  private let takenOver: @Loop @Sendable (KeyTakeover) -> Void
  private var secrets: [ClientID: ClientSecret] = [:]
  /// Which of its keys signs for a client, where it is not the first.
  private var turns: [ClientID: Int] = [:]

  /// Secrets for the clients in `keys`, each signed by the key of its team, that live for `lifetime`. Where Apple refuses
  /// it, the one in `secondKeys` signs; `takenOver` is told then.
  package nonisolated init(
    keys: [ClientID: TeamKey], secondKeys: [ClientID: TeamKey] = [:], audience: String, lifetime: Duration,
    now: @escaping @Sendable () -> Timestamp,
    takenOver: @escaping @Loop @Sendable (KeyTakeover) -> Void = { _ in }
  ) {
    self.keys = keys.reduce(into: [:]) { all, key in
      all[key.key] = [key.value] + (secondKeys[key.key].map { [$0] } ?? [])
    }
    (self.audience, self.lifetime, self.now, self.takenOver) = (audience, lifetime, now, takenOver)
  }

  /// The secret of a client that is good for a while yet. Throws `.noKey` for a client whose team's key we do not have.
  func secret(of client: ClientID) throws(AppleTokenError) -> ClientSecret {
    let now = now()
    // Before its beginning: the clock was set back, and Apple would find it issued in the future.
    if let secret = secrets[client], secret.issuedAt <= now, now + lifetime / 5 < secret.expiresAt { return secret }
    guard let keys = keys[client] else {
      throw AppleTokenError(.noKey, "no key of a team is configured for \(client)")
    }
    let secret = try make(for: client, by: keys[turns[client] ?? 0], at: now)
    secrets[client] = secret
    return secret
  }

  /// Apple does not accept the secret: the next one is a new one, by the clock of then.
  func discard(_ secret: ClientSecret, of client: ClientID) {
    if secrets[client] == secret { secrets[client] = nil }
  }

  /// A secret by the other key than the one whose secret was refused; nil where there is none.
  func alternative(to refused: ClientSecret, of client: ClientID) throws(AppleTokenError) -> ClientSecret? {
    guard let key = keys[client]?.first(where: { $0.id != refused.key }) else { return nil }
    return try make(for: client, by: key, at: now())
  }

  /// Apple accepts the secret, which is by the other key than the one it refused: that key signs from now on.
  func take(_ secret: ClientSecret, inPlaceOf refused: ClientSecret, of client: ClientID) {
    guard let keys = keys[client], let turn = keys.firstIndex(where: { $0.id == secret.key }) else { return }
    secrets[client] = secret
    // Of several requests that were under way, one is the first to know.
    guard turns.updateValue(turn, forKey: client) ?? 0 != turn else { return }
    takenOver(
      KeyTakeover(
        client: client, team: keys[turn].team, refused: refused.key, signing: secret.key, isSecond: turn == 1))
  }

  /// What an operator looks at when Apple does not accept the secrets of a client.
  func origin(of client: ClientID) -> String {
    guard let keys = keys[client], let team = keys.first?.team else { return "\(client)" }
    return "\(client), signed by key \(keys.map { "\($0.id)" }.joined(separator: " and key ")) of team \(team)"
  }

  private func make(
    for client: ClientID, by key: TeamKey, at now: Timestamp
  ) throws(AppleTokenError) -> ClientSecret {
    do {
      return try ClientSecret(for: client, by: key, audience: audience, at: now, lifetime: lifetime)
    } catch {
      throw AppleTokenError(.unsigned, "no client secret for \(client): \(error)")
    }
  }
}
