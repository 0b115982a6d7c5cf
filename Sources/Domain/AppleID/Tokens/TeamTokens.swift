import AccountEvents
import EventLoop
import HTTPClient

/// The access tokens with which teams may have users moved: one for each client, renewed before its hour is over.
///
/// One request fetches a token, and all who need it meanwhile wait for that one. Where it fails it fails for all of them;
/// who comes then tries anew.
@Loop
final class TeamTokens {
  private struct Held {
    let token: AccessToken
    let issuedAt, renewedAt: Timestamp
  }

  private let url: HTTPClientURL
  private let forms: AppleForms
  private let now: @Sendable () -> Timestamp
  private var held: [ClientID: Held] = [:]
  /// Who waits for a fetch that is under way; told nothing where there is none any more.
  private var waiters: [ClientID: [CheckedContinuation<Result<AccessToken, AppleTokenError>?, Never>]] = [:]

  /// Tokens from the token endpoint.
  nonisolated init(from url: HTTPClientURL, by forms: AppleForms, now: @escaping @Sendable () -> Timestamp) {
    (self.url, self.forms, self.now) = (url, forms, now)
  }

  /// A token that is good for a while yet: a fifth of its life at least.
  func token(of client: ClientID) async throws(AppleTokenError) -> AccessToken {
    while true {
      let now = now()
      // Before its beginning: the clock was set back, and nobody knows how old the token is.
      if let held = held[client], held.issuedAt <= now, now < held.renewedAt { return held.token }
      if waiters[client] == nil {
        waiters[client] = []
        return try await fetch(for: client)
      }
      let result: Result<AccessToken, AppleTokenError>? = await withCheckedContinuation { waiter in
        // A task that does not prefer the loop's executor has given way since it looked.
        if waiters[client] == nil { return waiter.resume(returning: nil) }
        waiters[client]?.append(waiter)
      }
      guard let result else { continue }
      do throws(AppleTokenError) {
        return try result.get()
      } catch {
        // That the task which asked was cancelled says nothing of Apple.
        guard error.code == .cancelled, !Task.isCancelled else { throw error }
      }
    }
  }

  /// Apple does not take the token: the next one is a new one.
  func discard(_ token: AccessToken, of client: ClientID) {
    if held[client]?.token == token { held[client] = nil }
  }

  private func fetch(for client: ClientID) async throws(AppleTokenError) -> AccessToken {
    let result: Result<AccessToken, AppleTokenError>
    do throws(AppleTokenError) {
      let askedAt = now()
      let granted = try GrantedTokens(
        reading: try await forms.post(
          [("grant_type", "client_credentials"), ("scope", "user.migration")], to: url, of: client, isRepeatable: true))
      held[client] = Held(
        token: granted.accessToken, issuedAt: askedAt, renewedAt: askedAt + granted.lifetime * 4 / 5)
      result = .success(granted.accessToken)
    } catch {
      result = .failure(error)
    }
    for waiter in waiters.removeValue(forKey: client) ?? [] { waiter.resume(returning: result) }
    return try result.get()
  }
}
