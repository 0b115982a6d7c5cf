import AccountEvents
import AccountStore
import AppleID
import EventLoop
import JSON
import Telemetry

/// Fresh access tokens for applications, by refresh tokens that they never see.
@Loop
final class AccessTokens {
  /// The largest body that is read, in bytes.
  nonisolated static let largestBody = 4096

  private let store: any AccountStore
  private let endpoints: AppleTokenEndpoints
  private let sight: AccountSight
  private let logger: Logger

  /// Access tokens from Apple.
  init(_ store: any AccountStore, _ endpoints: AppleTokenEndpoints, _ sight: AccountSight, logger: Logger) {
    (self.store, self.endpoints, self.sight, self.logger) = (store, endpoints, sight, logger)
  }

  /// What Apple has granted.
  struct Granted {
    let client: ClientID
    let token: AccessToken
    let lifetime: Duration
  }

  /// Asks Apple for a new one, for the app `client`, or for the only one of the caller's that there is.
  func refresh(_ id: AccountID, for client: ClientID?, of clients: Set<ClientID>) async throws(Problem) -> Granted {
    if let client, !clients.contains(client) {
      throw Problem(.clientNotAllowed, "clientId is none of the caller's apps.")
    }
    let held = try await newest(of: id, for: client, of: clients)
    if let granted = try await ask(with: held) { return granted }
    // Who has signed in again while Apple was asked has another one.
    let now = try await newest(of: id, for: client, of: clients)
    guard now != held, let granted = try await ask(with: now) else { throw .ended }
    return granted
  }

  /// Asks Apple with a refresh token; nil where Apple says that it is dead.
  private func ask(with held: NewToken) async throws(Problem) -> Granted? {
    guard let refresh = RefreshToken(held.value.text) else {
      logger.error("a token that is held is not of Apple's form", ["client": .describing(held.client)])
      throw .ended
    }
    let grant: Grant
    do throws(AppleTokenError) {
      grant = try await endpoints.validate(refresh, of: held.client)
    } catch {
      logger.warning(
        "an access token could not be had",
        [
          "client": .describing(held.client), "apple.error": .string(error.code.rawValue),
          "apple.detail": .string(error.detail),
        ])
      let wait = error.retryAfter.map { Int($0.components.seconds) + 1 } ?? 5
      throw .unavailable("Apple cannot be asked now. Repeat the same request.", retryAfter: wait)
    }
    guard case .granted(let granted) = grant else { return nil }
    return Granted(client: held.client, token: granted.accessToken, lifetime: granted.lifetime)
  }

  /// The youngest refresh token of the app; none of a sign-in before a deletion that was asked for.
  private func newest(
    of id: AccountID, for client: ClientID?, of clients: Set<ClientID>
  ) async throws(Problem) -> NewToken {
    let knowledge: AccountKnowledge
    var tokens: [StoredToken] = []
    do throws(AccountStoreError) {
      knowledge = try await store.knowledge(of: id)
      if case .known(let profile) = knowledge {
        let deletion = try await store.lastDeletion(of: id)
        tokens = try await store.tokens(of: profile.account).filter { token in
          token.token.kind == .refresh && deletion.map { token.issuedAt > $0.requestedAt } ?? true
        }
      }
    } catch {
      logger.error(
        "the account store does not answer",
        ["store.error": .string(error.code.rawValue), "store.detail": .string(error.detail)])
      throw .unavailable("The account store does not answer. Repeat the same request.")
    }
    guard case .known(let profile) = knowledge, let signIns = sight.signIns(of: profile, for: clients) else {
      throw Problem(.notFound, "There is no such account of the caller's apps.")
    }
    // Tokens that are known to be invalid stand for no sign-in.
    let living = Set(signIns.map(\.client)).intersection(client.map { [$0] } ?? clients)
    let own = tokens.filter { living.contains($0.token.client) }
    guard Set(own.map(\.token.client)).count <= 1 else {
      throw Problem(.malformed, "clientId is needed: the person has signed in to several of the caller's apps.")
    }
    guard let newest = own.max(by: { $0.issuedAt < $1.issuedAt }) else { throw .ended }
    return newest.token
  }

  /// Reads a body, which may be empty. Throws what is wrong with it.
  nonisolated static func client(reading body: RawSpan) throws(Problem) -> ClientID? {
    if body.byteCount == 0 { return nil }
    var text: String?
    do throws(JSONError) {
      let limits = JSONLimits(bytes: largestBody, depth: 2, members: 4)
      try JSONReader.read(body, limits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          guard name == "clientId" else { throw JSONError(.malformed, at: value.offset) }
          text = try value.readString()
        }
      }
    } catch {
      throw Problem(.malformed, "The body is one JSON object with the text clientId, or is empty.")
    }
    guard let text else { return nil }
    guard let client = ClientID(text) else { throw Problem(.malformed, "clientId is not of its form.") }
    return client
  }
}

extension Problem {
  fileprivate static let ended = Problem(
    .authorizationEnded, "The authorization has ended, or its tokens were never kept: the person has to sign in again.")
}
