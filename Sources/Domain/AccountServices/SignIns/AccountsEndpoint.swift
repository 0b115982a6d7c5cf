import AccountEvents
import AccountStore
import AppleID
import EventLoop
import HTTPClient
import HTTPServer
import JSON
import Telemetry

/// What applications ask: sign somebody in, say what is known of an account and what happens to it, have it deleted, give a
/// fresh access token.
/// `schemas/accounts.openapi.yaml` describes it.
@Loop
final class AccountsEndpoint {
  private let callers: Callers
  private let signIns: SignIns
  private let deletions: Deletions
  private let accessTokens: AccessTokens
  private let events: EventStreams
  private let store: any AccountStore
  private let sight: AccountSight
  private let auditLog: HTTPClientURL?
  private let metrics: AccountsMetrics
  private let logger: Logger

  /// An endpoint for these callers, who are told where the audit log is published.
  init(
    _ callers: Callers, _ signIns: SignIns, _ deletions: Deletions, _ accessTokens: AccessTokens,
    _ events: EventStreams, _ store: any AccountStore, _ sight: AccountSight, auditLog: HTTPClientURL?,
    metrics: AccountsMetrics, logger: Logger
  ) {
    (self.callers, self.signIns, self.store, self.sight) = (callers, signIns, store, sight)
    (self.deletions, self.accessTokens, self.events) = (deletions, accessTokens, events)
    (self.auditLog, self.metrics, self.logger) = (auditLog, metrics, logger)
  }

  /// Answers one request.
  func respond(to request: HTTPRequest) async -> HTTPResponse {
    let response: HTTPResponse
    do throws(Problem) {
      let (place, caller) = try admit(request)
      switch place {
      case .signIns:
        try Self.expect("POST", request.hasMethod("POST"))
        response = try await signIn(request, caller)
      case .accounts:
        try Self.expect("GET, HEAD", request.hasMethod("GET") || request.hasMethod("HEAD"))
        response = try await find(request.query ?? "", caller)
      case .account(let id):
        if request.hasMethod("DELETE") {
          response = try await delete(id, request, caller)
        } else {
          try Self.expect("GET, HEAD, DELETE", request.hasMethod("GET") || request.hasMethod("HEAD"))
          let known: AccountKnowledge
          do throws(AccountStoreError) { known = try await store.knowledge(of: id) } catch { throw problem(error) }
          response = try show(known, of: id, caller)
        }
      case .accessToken(let id):
        try Self.expect("POST", request.hasMethod("POST"))
        response = try await refresh(id, request, caller)
      case .deletion(let id):
        try Self.expect("GET, HEAD", request.hasMethod("GET") || request.hasMethod("HEAD"))
        response = .json(private: try await deletions.show(id, by: caller.clients).json(auditLog).bytes)
      case .events:
        try Self.expect("GET, HEAD", request.hasMethod("GET") || request.hasMethod("HEAD"))
        try Self.expectOnce("Last-Event-ID", in: request)
        response = try await events.stream(
          to: caller, after: request.header("Last-Event-ID"), request.query, isHead: request.hasMethod("HEAD"))
      }
    } catch {
      response = error.response
    }
    metrics.count(response.status)
    return response
  }

  /// What a path leads to.
  private enum Place {
    case signIns
    case accounts
    case account(AccountID)
    case accessToken(AccountID)
    case deletion(EventID)
    case events
  }

  /// Who asks, and for what.
  private func admit(_ request: HTTPRequest) throws(Problem) -> (place: Place, caller: AccountsSettings.Caller) {
    guard let place = Self.place(of: request.path) else {
      throw Problem(
        .notFound,
        "There are /v1/sign-ins, /v1/accounts, /v1/accounts/ID, /v1/accounts/ID/access-token, /v1/deletions/ID and "
          + "/v1/events here.")
    }
    try Self.expectOnce("Authorization", in: request)
    guard let caller = callers.caller(showing: request.header("Authorization")) else {
      throw Problem(.unauthorized, "This wants Authorization: Bearer and the token of a caller.")
    }
    if let wait = callers.wait(of: caller) {
      metrics.limited.increment()
      let seconds = Int(wait.components.seconds) + 1
      throw Problem(.tooManyRequests, "The caller has asked too often.", retryAfter: seconds)
    }
    return (place, caller)
  }

  private static func place(of path: String) -> Place? {
    if path.hasPrefix(accountPath) {
      let rest = path.utf8.span.extracting(droppingFirst: accountPath.utf8.count)
      guard let id = AccountID(text: unsafe rest.extracting(first: AccountID.length).bytes) else { return nil }
      if rest.count == AccountID.length { return .account(id) }
      return path.utf8.dropFirst(accountPath.utf8.count + AccountID.length).elementsEqual("/access-token".utf8)
        ? .accessToken(id) : nil
    }
    switch path {
    case "/v1/sign-ins": return .signIns
    case "/v1/accounts": return .accounts
    case "/v1/events": return .events
    default:
      guard path.hasPrefix(deletionPath) else { return nil }
      return EventID(String(path.dropFirst(deletionPath.count))).map { .deletion($0) }
    }
  }

  private static let accountPath = "/v1/accounts/"
  private static let deletionPath = "/v1/deletions/"

  private static func expect(_ allowed: String, _ isAllowed: Bool) throws(Problem) {
    if isAllowed { return }
    var problem = Problem(.wrongMethod, "This takes \(allowed).")
    problem.allowed = allowed
    throw problem
  }

  /// Two fields of a name that has one value are two words: whoever else reads the request may go by the other one.
  private static func expectOnce(_ name: String, in request: HTTPRequest) throws(Problem) {
    if request.repeatsHeader(name) { throw Problem(.malformed, "\(name) stands there twice.") }
  }

  /// The name that a caller has given to a request, so that it may be repeated.
  private static func idempotencyKey(of request: HTTPRequest) throws(Problem) -> String? {
    try expectOnce("Idempotency-Key", in: request)
    guard let key = request.header("Idempotency-Key") else { return nil }
    guard 1...255 ~= key.utf8.count, key.utf8.allSatisfy({ 0x21...0x7e ~= $0 }) else {
      throw Problem(.malformed, "Idempotency-Key is 1 to 255 visible ASCII characters.")
    }
    return key
  }

  // MARK: Sign-ins

  private func signIn(
    _ request: HTTPRequest, _ caller: AccountsSettings.Caller
  ) async throws(Problem) -> HTTPResponse {
    let key = try Self.idempotencyKey(of: request)
    try await read(request, upTo: SignInRequest.largestBody)
    let read: Result<SignInRequest, Problem> = request.withBody { body in
      do throws(Problem) { return .success(try SignInRequest(reading: body)) } catch { return .failure(error) }
    }
    let asked = try read.get()
    guard caller.clients.contains(asked.client) else {
      throw Problem(.clientNotAllowed, "clientId is none of the caller's apps.")
    }
    let signedIn = try await signIns.signIn(asked, named: key, by: caller.name)
    return .json(private: signedIn.json)
  }

  /// Reads a body in JSON; one that is empty need not say so.
  private func read(_ request: HTTPRequest, upTo limit: Int) async throws(Problem) {
    try Self.expectOnce("Content-Type", in: request)
    let type = request.header("Content-Type")
    guard type.map(Self.isJSON) ?? (request.announcedLength == 0) else {
      throw Problem(.unsupportedMediaType, "The body is JSON, and Content-Type: application/json says so.")
    }
    switch await request.readBody(upTo: limit) {
    case .complete: return
    case .refused(let refusal): throw Problem(refusal)
    case .lost: throw Problem(.tooSlow, "The connection ended before the body was there.")
    }
  }

  /// Whether a media type is that of JSON, whatever its parameters (RFC 9110, section 8.3.1).
  private static func isJSON(_ type: String) -> Bool {
    let name = type.prefix { $0 != ";" }
    return name.utf8.filter { $0 != 0x20 && $0 != 0x09 }.map { $0 | 0x20 } == Array("application/json".utf8)
  }

  // MARK: Accounts

  private func find(_ query: String, _ caller: AccountsSettings.Caller) async throws(Problem) -> HTTPResponse {
    var texts: [Substring: String] = [:]
    for pair in query.split(separator: "&", omittingEmptySubsequences: false) {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let value = String(percentDecoding: parts[1]),
        texts.updateValue(value, forKey: parts[0]) == nil
      else { throw Self.malformedQuery }
    }
    guard texts.count == 2, let subject = texts["sub"].flatMap(AppleSubject.init),
      let client = texts["client_id"].flatMap({ ClientID($0) })
    else { throw Self.malformedQuery }
    guard caller.clients.contains(client), let team = sight.team(of: client) else {
      throw Problem(.clientNotAllowed, "client_id is none of the caller's apps.")
    }
    let id = store.id(of: Account(team: team, subject: subject))
    let known: AccountKnowledge
    do throws(AccountStoreError) { known = try await store.knowledge(of: id) } catch { throw problem(error) }
    if case .erased(let since) = known {
      throw Problem(.erased, "The account was erased (\(since)), and the person has not signed in since.")
    }
    return try show(known, of: id, caller)
  }

  private static let malformedQuery = Problem(.malformed, "The query is sub=SUB&client_id=CLIENT, percent-encoded.")

  private func show(
    _ known: AccountKnowledge, of id: AccountID, _ caller: AccountsSettings.Caller
  ) throws(Problem) -> HTTPResponse {
    // Whose an erased account was, its id does not say.
    guard case .known(let profile) = known,
      let signIns = sight.signIns(of: profile, for: caller.clients)
    else { throw Problem(.notFound, "There is no such account of the caller's apps.") }
    return .json(private: profile.json(id, signIns))
  }

  private func delete(
    _ id: AccountID, _ request: HTTPRequest, _ caller: AccountsSettings.Caller
  ) async throws(Problem) -> HTTPResponse {
    let progress = try await deletions.request(id, named: try Self.idempotencyKey(of: request), by: caller)
    var response = HTTPResponse.json(private: progress.json(auditLog).bytes, status: 202)
    response.headers.append(("Location", Self.deletionPath + progress.deletion.id.text))
    return response
  }

  private func refresh(
    _ id: AccountID, _ request: HTTPRequest, _ caller: AccountsSettings.Caller
  ) async throws(Problem) -> HTTPResponse {
    try await read(request, upTo: AccessTokens.largestBody)
    let read: Result<ClientID?, Problem> = request.withBody { body in
      do throws(Problem) { return .success(try AccessTokens.client(reading: body)) } catch { return .failure(error) }
    }
    let granted = try await accessTokens.refresh(id, for: try read.get(), of: caller.clients)
    let answer = JSONWriter.object {
      $0.add("accessToken", granted.token.text)
      $0.add("clientId", granted.client.text)
      $0.add("expiresIn", granted.lifetime.components.seconds)
    }
    return .json(private: answer)
  }

  /// What a caller is told where the store fails, which is logged.
  private func problem(_ error: AccountStoreError) -> Problem {
    logger.error(
      "the account store does not answer",
      ["store.error": .string(error.code.rawValue), "store.detail": .string(error.detail)])
    return .unavailable("The account store does not answer.")
  }
}

extension HTTPResponse {
  /// An answer that nobody on the way may keep.
  fileprivate static func json(private bytes: [UInt8], status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, headers: privateJSON, body: .bytes(bytes))
  }

  private static let privateJSON = json([]).headers + [("Cache-Control", "no-store")]
}

extension SignedIn {
  fileprivate var json: [UInt8] {
    JSONWriter.object { answer in
      answer.add("account") {
        $0.add("id", id)
        $0.add("isNew", isNew)
      }
      answer.add("sub", token.account.subject.text)
      answer.add("team", token.account.team.text)
      answer.add("clientId", token.client.text)
      answer.add("signedInAt", at)
      if let email = token.email {
        answer.add("email") {
          $0.add("address", email.address.text)
          $0.add("isVerified", email.isVerified)
          $0.add("isPrivate", email.isPrivate)
        }
      }
      answer.add("relay") { relay.write(to: &$0) }
      answer.add("realUserStatus", token.realUserStatus?.name)
      answer.add("transferSub", token.transferSubject?.text)
      if let transfer {
        answer.add("transfer") {
          $0.add("key", transfer.key)
          AccountOrigin(fromTeam: transfer.fromTeam, with: token.client, former: transfer.former).write(to: &$0)
        }
      }
      answer.add("organization", token.organization)
    }
  }
}

extension VerifiedIdentityToken.RealUserStatus {
  fileprivate var name: String {
    switch self {
    case .unsupported: "unsupported"
    case .unknown: "unknown"
    case .likelyReal: "likely-real"
    }
  }
}

extension AccountProfile {
  fileprivate func json(_ id: AccountID, _ signIns: [SignIn]) -> [UInt8] {
    JSONWriter.object { answer in
      answer.add("id", id)
      answer.add("sub", account.subject.text)
      answer.add("team", account.team.text)
      answer.add("state", signIns.isEmpty ? "no-authorization" : "authorized")
      answer.add("lastSignInAt", signedInAt)
      answer.add("lastValidatedAt", signIns.compactMap(\.validatedAt).max())
      answer.add("signIns", count: signIns.count) { index, item in
        item.add("clientId", signIns[index].client.text)
        item.add("signedInAt", signIns[index].time)
        item.add("validatedAt", signIns[index].validatedAt)
      }
      answer.add("relay") { relay.write(to: &$0) }
      if let origin { answer.add("transfer") { origin.write(to: &$0) } }
    }
  }
}

extension AccountOrigin {
  /// The team of before, and the account there.
  fileprivate func write(to object: inout JSONWriter) {
    object.add("fromTeam", fromTeam.text)
    object.add("accountId", former)
  }
}

extension RelayKnowledge {
  /// As applications are told: whether mail may be sent to the account's address, as siwa-email-relay says it.
  fileprivate func write(to object: inout JSONWriter) {
    switch self {
    case .known(let state):
      object.add("status", state.status.rawValue)
      object.add("maySend", state.status == .enabled)
      object.add("since", state.since)
    case .unknown:
      object.add("status", "unknown")
      object.add("maySend", false)
    case .erased(let since):
      object.add("status", "erased")
      object.add("maySend", false)
      object.add("since", since)
    }
  }
}

extension JSONWriter {
  /// An account's id.
  fileprivate mutating func add(_ name: StaticString, _ id: AccountID?) {
    guard let id else { return }
    addPlain(name) { id.append(to: &$0) }
  }

  /// A moment, in RFC 3339's form.
  fileprivate mutating func add(_ name: StaticString, _ time: Timestamp?) {
    guard let time else { return }
    addPlain(name) { RFC3339.append(time.milliseconds, to: &$0) }
  }
}
