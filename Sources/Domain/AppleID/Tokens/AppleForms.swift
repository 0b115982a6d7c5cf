import AccountEvents
import EventLoop
import HTTPClient

/// Forms for Apple, each with the proof of who asks: what its endpoints for developers have in common.
///
/// Nothing is tried again here, but that a connection which Apple had closed unused is replaced by a new one, and that a
/// team's other key signs where Apple refuses the first.
@Loop
final class AppleForms {
  private let client: HTTPClient
  private let secrets: ClientSecrets
  private let deadline: Duration

  /// Forms that are given `deadline` for a whole answer.
  nonisolated init(client: HTTPClient, secrets: ClientSecrets, deadline: Duration) {
    (self.client, self.secrets, self.deadline) = (client, secrets, deadline)
  }

  /// The body of the answer 200 to the form, with who we are. Where Apple refuses the team's key, the form goes there once
  /// more with its other key: nothing was done with the first, as Apple looks at nothing before it knows who asks.
  ///
  /// With a `bearer` the form is about a person: then nothing that Apple says in words is told on. Elsewhere that is told
  /// unless it repeats `text`.
  func post(
    _ form: [(String, String)], to url: HTTPClientURL, of client: ClientID, isRepeatable: Bool,
    bearer: AccessToken? = nil, hiding text: String? = nil
  ) async throws(AppleTokenError) -> [UInt8] {
    func post(_ secret: ClientSecret) async throws(AppleTokenError) -> [UInt8] {
      let request = HTTPClientRequest.post(
        form: form + [("client_id", client.text), ("client_secret", secret.text)], to: url,
        headers: [("Accept", "application/json")] + (bearer.map { [("Authorization", "Bearer \($0.text)")] } ?? []),
        isRepeatable: isRepeatable, within: deadline, maximumBodySize: GrantedTokens.maximumSize)
      let answer = try await send(request)
      // Its media type is not looked at, nor its charset: what the body is, its reader finds out.
      if answer.status == 200 { return answer.body }
      let error =
        bearer == nil
        ? AppleTokenError(answer, hiding: [secret.text] + (text.map { [$0] } ?? [])) : AppleTokenError(toBearer: answer)
      throw explain(error, to: secret, of: client)
    }
    let secret = try secrets.secret(of: client)
    do throws(AppleTokenError) {
      return try await post(secret)
    } catch {
      guard error.code == .invalidClient, let other = try secrets.alternative(to: secret, of: client) else {
        throw error
      }
      do throws(AppleTokenError) {
        let body = try await post(other)
        secrets.take(other, inPlaceOf: secret, of: client)
        return body
      } catch {
        if error.code == .invalidGrant { secrets.take(other, inPlaceOf: secret, of: client) }
        throw error
      }
    }
  }

  private func send(_ request: HTTPClientRequest) async throws(AppleTokenError) -> HTTPClientResponse {
    do {
      return try await client.send(request)
    } catch {
      throw AppleTokenError(error)
    }
  }

  /// The error, with what an operator looks at where Apple does not let us.
  private func explain(_ error: AppleTokenError, to secret: ClientSecret, of client: ClientID) -> AppleTokenError {
    let question: String
    switch error.code {
    case .invalidClient, .unauthorizedClient:
      secrets.discard(secret, of: client)
      question =
        "are the key and its ID those of the team, is the app the team's with Sign in with Apple, does the "
        + "clock go right?"
    case .invalidScope, .forbidden: question = "may the team move the app's users?"
    default: return error
    }
    return AppleTokenError(error.code, "\(error.detail) (\(secrets.origin(of: client)): \(question))")
  }
}
