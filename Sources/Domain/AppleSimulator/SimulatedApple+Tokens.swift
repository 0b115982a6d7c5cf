import AccountEvents
package import Cryptography
import EventLoop
import HTTPServer

// MARK: What developers and people do

extension SimulatedApple {
  /// Gives a team a key for Sign in with Apple, beside those that it has, and makes the apps the team's.
  package func enroll(team: String, clients: [String]) throws(CryptographyError) -> DeveloperKey {
    try developers.enroll(team, clients: clients)
  }

  /// Has sign-ins to the app in a browser end at these addresses, beside those that it has.
  package func register(redirectURIs: [String], for client: String) { developers.register(redirectURIs, for: client) }

  /// The team withdraws one of its keys.
  package func withdrawKey(_ id: String) { developers.withdraw(id) }

  /// Somebody signs in to an app: the code that the app gets. `redirectURI` is nil for a native app.
  package func signIn(
    _ person: Person, to client: String, redirectURI: String? = nil
  ) throws(CryptographyError) -> String {
    try authorizations.signIn(person, to: client, redirectURI: redirectURI, nonce: nil, at: clock())
  }

  /// Redeems a code without an endpoint; false where it is not good.
  @discardableResult
  package func redeem(_ code: String, by client: String) throws(CryptographyError) -> Bool {
    try authorizations.redeem(code, by: client, redirectURI: nil, at: clock()) != nil
  }

  /// Whether the person still has a refresh token for the app that is good.
  package func isAuthorized(_ person: Person, for client: String) -> Bool {
    !authorizations.refreshTokens(of: person, client).isEmpty
  }
}

// MARK: The endpoints

extension SimulatedApple {
  /// `POST /auth/token`.
  func tokenResponse(_ request: HTTPRequest) async -> HTTPResponse {
    tokensAsked += 1
    return await response(to: request, as: tokensAnswer, after: tokensDelay) { form, caller in
      let client = caller.client
      if form["grant_type"] == "client_credentials" { return try teamToken(form, for: caller) }
      guard team(of: client) == caller.team else { return .failure("invalid_client") }
      switch form["grant_type"] {
      case "authorization_code":
        guard let code = form["code"] else { return .failure("invalid_request") }
        let tokens = try authorizations.redeem(code, by: client, redirectURI: form["redirect_uri"], at: clock())
        return try answer(tokens, for: client)
      case "refresh_token":
        guard let token = form["refresh_token"] else { return .failure("invalid_request") }
        return try answer(try authorizations.refresh(token, by: client, at: clock()), for: client)
      case nil: return .failure("invalid_request")
      default: return .failure("unsupported_grant_type")
      }
    }
  }

  /// `POST /auth/revoke`: 200 and nothing, also for what is no token.
  func revocationResponse(_ request: HTTPRequest) async -> HTTPResponse {
    revocationsAsked += 1
    return await response(to: request, as: revocationsAnswer, after: revocationsDelay) { form, caller in
      let client = caller.client
      guard team(of: client) == caller.team else { return .failure("invalid_client") }
      guard let token = form["token"] else { return .failure("invalid_request") }
      if let person = authorizations.revoke(token, by: client, at: clock()) {
        try tell(.consentRevoked, of: person, client)
      }
      return .success(nil)
    }
  }

  /// What comes of a form.
  enum Outcome {
    /// 200 with these members, or with an empty body.
    case success(Members?)
    /// 400 with this error.
    case failure(String, String? = nil)
  }

  private func answer(_ tokens: Authorizations.Tokens?, for client: String) throws -> Outcome {
    guard let tokens else { return .failure("invalid_grant", "The code has expired or has been revoked.") }
    var members = Members(["access_token": quoted(tokens.access)])
    if tokens.refresh != nil { members["token_type"] = quoted("Bearer") }
    members["expires_in"] = "3600"
    if let refresh = tokens.refresh { members["refresh_token"] = quoted(refresh) }
    members["id_token"] = quoted(try identityToken(of: tokens, for: client))
    return .success(members)
  }

  /// Does what the form asks for, if it proves who asks, and answers as it was told to.
  func response(
    to request: HTTPRequest, as answer: TokensAnswer, after delay: Duration,
    _ act: (_ form: FormFields, _ caller: Caller) throws -> Outcome
  ) async -> HTTPResponse {
    guard request.hasMethod("POST") else { return HTTPResponse(status: 405, headers: [("Allow", "POST")]) }
    guard request.header("User-Agent") != nil else { return .page(status: 403) }
    guard case .complete = await request.readBody(upTo: 65_536) else { return HTTPResponse(status: 400) }
    do {
      if answer.isRefusal {
        try await Loop.sleep(for: delay)
        return try await refusal(answer)
      }
      let outcome = try outcome(of: request, act)
      try await Loop.sleep(for: delay)
      return Self.response(outcome, as: answer)
    } catch {
      // The server ends, or OpenSSL gives no random bytes.
      return HTTPResponse(status: 503)
    }
  }

  private func outcome(
    of request: HTTPRequest, _ act: (_ form: FormFields, _ caller: Caller) throws -> Outcome
  ) throws -> Outcome {
    let type = request.header("Content-Type") ?? ""
    let body = request.withBody { body in unsafe body.withUnsafeBytes { unsafe [UInt8]($0) } }
    guard type.lowercased().hasPrefix("application/x-www-form-urlencoded"), let form = FormFields(body) else {
      return .failure("invalid_request")
    }
    guard let client = form["client_id"], let secret = form["client_secret"],
      let team = developers.team(behind: secret, of: client, audience: issuer, at: clock()),
      self.team(of: client) == team || transfers.hasSent(client, team, at: clock())
    else { return .failure("invalid_client") }
    return try act(form, Caller(client: client, team: team))
  }

  private func refusal(_ answer: TokensAnswer) async throws -> HTTPResponse {
    switch answer {
    case .throttled: return HTTPResponse(status: 429, headers: [("Retry-After", "\(retryAfter.components.seconds)")])
    case .refused: return Self.response(.failure("invalid_request"), as: .tokens)
    case .html: return .page(status: 200)
    case .redirect: return HTTPResponse(status: 307, headers: [("Location", "/auth/token")])
    case .silence: try await Loop.sleep(for: .seconds(3600))  // longer than anyone waits
    default: break
    }
    return .page(status: 503)
  }

  private static func response(_ outcome: Outcome, as answer: TokensAnswer) -> HTTPResponse {
    var status = 200, members: Members?
    switch outcome {
    case .success(let made): members = made
    case .failure(let error, let words):
      status = 400
      members = Members(["error": quoted(error)])
      if let words { members?["error_description"] = quoted(words) }
    }
    switch answer {
    case .lost:
      return HTTPResponse(status: status, body: .stream { _ in throw CancellationError() })
    case .failedLate: return .page(status: 500)
    case .tenMegabytes: members = Members(["padding": quoted(String(repeating: "A", count: 10_000_000))])
    case .memberTwice: if let name = members?.firstName { members?.repeatMember(name, quoted("another")) }
    case .wrongKind: if let name = members?.firstName { members?[name] = "7" }
    default: break
    }
    guard var body = members?.json else { return HTTPResponse(status: status) }
    if answer == .cutOff { body.removeLast(20) }
    return HTTPResponse(
      status: status,
      headers: [("Content-Type", "application/json;charset=ISO-8859-1"), ("Cache-Control", "no-store")],
      body: .bytes([UInt8](body.utf8)))
  }
}

extension HTTPResponse {
  /// A page in HTML, as Apple's edge has them.
  fileprivate static func page(status: Int) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: [("Content-Type", "text/html")],
      body: .bytes([UInt8]("<html><head><title>\(status)</title></head><body>Apple</body></html>\n".utf8)))
  }
}
