import HTTPClient
import JSON

extension AppleTokenError {
  /// Why there is no answer.
  init(_ error: HTTPClientError) {
    let code: Code =
      switch error.code {
      case .name, .connect, .proxy, .tls, .overloaded, .resources: .unreachable
      case .certificate, .trustAnchors: .certificate
      case .interrupted: .interrupted
      case .deadline: .deadline
      case .tooLarge, .malformedAnswer: .malformedAnswer
      case .malformedRequest: .malformedRequest
      case .cancelled, .closed: .cancelled
      }
    self.init(code, error.description)
  }

  /// What an answer means that is not 200. What it says in words is told on without any of the `secrets`.
  init(_ answer: HTTPClientResponse, hiding secrets: [String]) {
    self.init(answer) { $0.words(hiding: secrets) }
  }

  /// What an answer of the migration endpoint means that is not 200. What it says in words is not told on: that may name a
  /// person.
  init(toBearer answer: HTTPClientResponse) {
    let error = AppleTokenError(answer) { $0.reason }
    switch (answer.status, error.code) {
    case (_, .invalidClient), (_, .unauthorizedClient), (_, .invalidScope): self = error
    // RFC 6750 has 401 `invalid_token`. Of a token whose hour is over, Apple's engineers say 400 `invalid_grant`.
    case (401, _), (_, .invalidToken), (400, .invalidGrant): self.init(.invalidToken, error.detail)
    case (403, _): self.init(.forbidden, error.detail)
    // In 400 alone it is about the user.
    case (401..., .invalidRequest): self.init(.unexpectedStatus, error.detail)
    default: self = error
    }
  }

  private init(_ answer: HTTPClientResponse, words: (OAuthRefusal) -> String) {
    let status = "status \(answer.status)"
    switch answer.status {
    case 429: self.init(.throttled, status, retryAfter: answer.retryAfter)
    case 408, 500...599: self.init(.unavailable, status, retryAfter: answer.retryAfter)
    case 400...499:
      let refusal: OAuthRefusal
      do throws(JSONError) {
        refusal = try OAuthRefusal(reading: answer.body)
      } catch {
        self.init(answer.status == 400 ? .malformedAnswer : .unexpectedStatus, "\(status), \(error)")
        return
      }
      self.init(refusal.code, "\(status), \(words(refusal))")
    default: self.init(.unexpectedStatus, status)
    }
  }
}

extension HTTPClientResponse {
  /// What the server asks for in seconds, a day at most; a date is not looked at: it would need their clock and ours.
  fileprivate var retryAfter: Duration? {
    guard let text = header("Retry-After"), 1...9 ~= text.utf8.count, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
      let seconds = Int64(text)
    else { return nil }
    return .seconds(min(seconds, 86_400))
  }
}
