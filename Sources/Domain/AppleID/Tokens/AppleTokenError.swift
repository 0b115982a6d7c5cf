/// Why Apple did not do what it was asked for, or why nobody can know whether it did.
///
/// Neither it nor what it says of itself holds a token, a code or a client secret.
package struct AppleTokenError: Error, Sendable, CustomStringConvertible {
  /// The closed list of reasons; the raw value is the label of a metric and the key in a log.
  package enum Code: String, Sendable, CaseIterable {
    // Apple was not asked.
    /// No key of the client's team is configured.
    case noKey = "no-key"
    /// OpenSSL would not sign the client secret.
    case unsigned
    /// What was to be sent is no request.
    case malformedRequest = "malformed-request"
    /// No connection came to stand.
    case unreachable
    /// The certificate is not Apple's.
    case certificate

    // Apple may have been asked.
    /// The connection broke before the answer was whole.
    case interrupted
    /// The answer took too long.
    case deadline
    /// 5xx: something at Apple failed.
    case unavailable
    /// An answer that cannot be Apple's, or is larger than Apple's are.
    case malformedAnswer = "malformed-answer"
    /// A status that Apple does not use, such as a redirect.
    case unexpectedStatus = "unexpected-status"
    /// We gave up, as the program ends.
    case cancelled

    // Apple said no.
    /// 429: too many requests.
    case throttled
    /// The client secret, or the client, is not right.
    case invalidClient = "invalid-client"
    /// The client may not ask for this.
    case unauthorizedClient = "unauthorized-client"
    /// 403: the team may not ask for this.
    case forbidden
    /// The request lacks something or says it twice.
    case invalidRequest = "invalid-request"
    /// The code or token is not good.
    case invalidGrant = "invalid-grant"
    /// The team's access token is not good.
    case invalidToken = "invalid-token"
    /// Apple does not know this kind of grant.
    case unsupportedGrantType = "unsupported-grant-type"
    /// Apple does not know this scope.
    case invalidScope = "invalid-scope"
    /// An error that nobody knows yet.
    case unknownError = "unknown-error"
  }

  /// What can make the same request succeed.
  package enum Remedy: Sendable, Hashable {
    /// Time: nobody need do anything.
    case time
    /// An operator: something is set wrongly, here or at Apple, and the request is good.
    case `operator`
    /// Nothing.
    case none
  }

  /// Which reason it is.
  package let code: Code
  /// The particulars, for an operator: printable ASCII, of bounded length.
  package let detail: String
  /// How long Apple asks not to be asked, if it said.
  package let retryAfter: Duration?

  init(_ code: Code, _ detail: String, retryAfter: Duration? = nil) {
    (self.code, self.detail, self.retryAfter) = (code, detail, retryAfter)
  }

  /// What can make the same request succeed.
  package var remedy: Remedy {
    switch code {
    // A new access token that is not good may not be known yet to all of Apple.
    case .unreachable, .interrupted, .deadline, .unavailable, .malformedAnswer, .cancelled, .throttled, .invalidToken:
      .time
    case .noKey, .unsigned, .certificate, .unexpectedStatus, .invalidClient, .unauthorizedClient, .forbidden,
      .invalidScope:
      .operator
    case .malformedRequest, .invalidRequest, .invalidGrant, .unsupportedGrantType, .unknownError: .none
    }
  }

  /// Whether the same request may succeed a little later, with nobody changing anything.
  package var isTransient: Bool { remedy == .time }

  /// Whether Apple may have done what it was asked for: nobody can know.
  package var isUncertain: Bool {
    switch code {
    case .interrupted, .deadline, .unavailable, .malformedAnswer, .unexpectedStatus, .cancelled: true
    case .noKey, .unsigned, .malformedRequest, .unreachable, .certificate, .throttled, .invalidClient,
      .unauthorizedClient, .forbidden, .invalidRequest, .invalidGrant, .invalidToken, .unsupportedGrantType,
      .invalidScope, .unknownError:
      false
    }
  }

  /// The code and the particulars.
  package var description: String { "\(code.rawValue): \(detail)" }
}
