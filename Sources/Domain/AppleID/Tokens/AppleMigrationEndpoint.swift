package import AccountEvents
package import EventLoop
package import HTTPClient

/// Apple's endpoint for the users of an app that changes teams: `POST https://appleid.apple.com/auth/usermigrationinfo`.
///
/// It answers both teams for 60 days from the acceptance of the transfer on, and the sending team already before. Each
/// question may be asked again: it changes nothing at Apple. The team's access token is shared by all questions that are
/// under way, and renewed in time; where Apple does not take it, once more at once.
@Loop
package final class AppleMigrationEndpoint {
  private let migration: HTTPClientURL
  private let forms: AppleForms
  private let tokens: TeamTokens

  /// An endpoint that is given `deadline` for a whole answer; the team's access tokens come from `token`. The addresses
  /// are Apple's, or somebody else's in a rehearsal.
  package nonisolated init(
    token: HTTPClientURL, migration: HTTPClientURL, client: HTTPClient, secrets: ClientSecrets, deadline: Duration,
    now: @escaping @Sendable () -> Timestamp
  ) {
    self.migration = migration
    forms = AppleForms(client: client, secrets: secrets, deadline: deadline)
    tokens = TeamTokens(from: token, by: forms, now: now)
  }

  /// What the sending team hands over in place of a subject: a transfer identifier for the team `target`, always the same.
  ///
  /// Nil where Apple refuses the user (400 `invalid_request`): consent was withdrawn, or it never was one of the app's. It
  /// says the same of every user where the team `target` is none, and once the 60 days are over. The own team must not be
  /// the `target`: Apple answers with identifiers that nobody can exchange.
  package func identifier(
    of subject: AppleSubject, to target: TeamID, by client: ClientID
  ) async throws(AppleTokenError) -> TransferSubject? {
    guard let body = try await ask([("sub", subject.text), ("target", target.text)], client) else { return nil }
    return try TransferSubject(reading: body)
  }

  /// Who the user is at the receiving team. Nil where Apple refuses the identifier, for the same reasons.
  package func account(
    of subject: TransferSubject, by client: ClientID
  ) async throws(AppleTokenError) -> TransferredUser? {
    guard let body = try await ask([("transfer_sub", subject.text)], client) else { return nil }
    return try TransferredUser(reading: body)
  }

  /// Has Apple give the team's access token in the name of an app, and asks about nobody.
  package func authorize(as client: ClientID) async throws(AppleTokenError) { _ = try await tokens.token(of: client) }

  private func ask(_ form: [(String, String)], _ client: ClientID) async throws(AppleTokenError) -> [UInt8]? {
    func ask(_ token: AccessToken) async throws(AppleTokenError) -> [UInt8]? {
      do throws(AppleTokenError) {
        return try await forms.post(form, to: migration, of: client, isRepeatable: true, bearer: token)
      } catch {
        switch error.code {
        case .invalidRequest: return nil
        case .invalidToken: tokens.discard(token, of: client)
        default: break
        }
        throw error
      }
    }
    do throws(AppleTokenError) {
      return try await ask(try await tokens.token(of: client))
    } catch {
      guard error.code == .invalidToken else { throw error }
      return try await ask(try await tokens.token(of: client))
    }
  }
}
