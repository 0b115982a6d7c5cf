import AccountEvents
import AccountStore
package import AppleID
package import EventLoop
package import Telemetry

/// Apple, asked to end authorizations. Each app has a circuit breaker of its own, as a team's key can be wrong while
/// everybody else's is right.
@Loop
package final class AppleRevocations {
  /// After so many failures in a row an app's requests wait; as long as this says, or longer where Apple asks for it.
  private static let failures = 5
  private static let pace = RetryPace(first: .seconds(1), longest: .seconds(60))

  private let endpoints: AppleTokenEndpoints
  private let clock: @Loop () -> MonotonicTime
  private let random: @Sendable () -> Double
  private let logger: Logger
  private var breakers: [ClientID: CircuitBreaker] = [:]

  /// Apple behind these endpoints; `random` gives numbers from 0 to 1.
  package init(
    _ endpoints: AppleTokenEndpoints, clock: @escaping @Loop () -> MonotonicTime,
    random: @escaping @Sendable () -> Double, logger: Logger
  ) {
    (self.endpoints, self.clock, self.random, self.logger) = (endpoints, clock, random, logger)
  }

  /// Asks for the end of the authorization that the token stands for. That it returns proves nothing.
  func revoke(_ token: NewToken) async throws {
    try await ask(token.client) { endpoints in
      do {
        switch token.kind {
        case .refresh: try await endpoints.revoke(try token.refreshToken, of: token.client)
        case .access: try await endpoints.revoke(try token.accessToken, of: token.client)
        }
      } catch let error as AppleTokenError where error.code == .invalidGrant {
        // As 200 is for a dead token, in another word.
      }
    }
  }

  /// Whether Apple says that a refresh token is dead.
  func isInvalid(_ token: NewToken) async throws -> Bool {
    try await ask(token.client) { endpoints in
      try await endpoints.validate(try token.refreshToken, of: token.client) == .invalid
    }
  }

  private func ask<Value: Sendable>(
    _ client: ClientID, _ body: @Loop (AppleTokenEndpoints) async throws -> Value
  ) async throws -> Value {
    try await breaker(of: client).run {
      do {
        return try await body(endpoints)
      } catch let error as AppleTokenError {
        throw failure(error, client)
      }
    }
  }

  private func breaker(of client: ClientID) -> CircuitBreaker {
    if let breaker = breakers[client] { return breaker }
    let breaker = CircuitBreaker(
      "apple-paused", opensAfter: Self.failures, pace: Self.pace, clock: clock, random: random)
    breakers[client] = breaker
    return breaker
  }

  /// What an error of Apple's is to an event. What an operator can put right, an event waits for.
  private func failure(_ error: AppleTokenError, _ client: ClientID) -> ConsumerFailure {
    let cause = "apple-\(error.code.rawValue)"
    switch error.remedy {
    case .time: return .transient(cause, retryAfter: error.retryAfter ?? .zero, detail: error.detail)
    case .operator:
      logger.error(
        "Apple cannot be asked in this app's name until an operator has put it right",
        ["apple.client": .string(client.text), "cause": .string(cause), "detail": .string(error.detail)])
      return .transient(cause, detail: error.detail)
    case .none: return .permanent(cause, detail: error.detail)
    }
  }
}

extension NewToken {
  fileprivate var refreshToken: RefreshToken { get throws { try RefreshToken(value.text) ?? malformed() } }
  fileprivate var accessToken: AccessToken { get throws { try AccessToken(value.text) ?? malformed() } }

  private func malformed<Token>() throws -> Token { throw ConsumerFailure.permanent("malformed-token") }
}
