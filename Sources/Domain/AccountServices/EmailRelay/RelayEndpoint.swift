import AccountEvents
package import AccountStore
import Cryptography
package import EventLoop
package import HTTPServer
import JSON
package import Telemetry

/// What mailers ask: may I send to this account now, and since when not? Reads only. `schemas/email-relay.openapi.yaml`
/// describes it.
@Loop
package final class RelayEndpoint {
  /// How many accounts one question may name.
  package nonisolated static let mostAccounts = 1000
  /// Of how many of these what is kept may not be readable while the others are answered. To find each takes some 20
  /// questions to the store.
  private static let mostUnreadable = 16
  /// A thousand of the longest accounts, and what stands around them.
  private static let largestBody = 512 * 1024

  /// What its server allows.
  package nonisolated static let bounds = EndpointServer.Bounds(
    head: 16_384, body: 1 << 20, connections: 1024, connectionsPerAddress: 256, request: .seconds(30))

  private let store: any AccountStore
  private let token: SHA256Digest
  private let metrics: RelayMetrics
  private let logger: Logger

  /// An endpoint over what the store knows, for whoever has the token.
  package init(_ store: any AccountStore, token: String, registry: MetricsRegistry, logger: Logger) {
    (self.store, self.logger) = (store, logger)
    self.token = SHA256.digest(of: Array(token.utf8))
    metrics = RelayMetrics(registry)
  }

  /// Answers one request.
  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    let response = await answer(request)
    metrics.count(response.status)
    return response
  }

  private func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let path = request.path
    guard path == Self.path || path.hasPrefix(Self.path + "/") else {
      return .refusal(404, "not-found", "There is \(Self.path) here.")
    }
    guard isAllowed(request) else {
      var refusal = HTTPResponse.refusal(401, "unauthorized", "This wants Authorization: Bearer and the token.")
      refusal.headers.append(("WWW-Authenticate", "Bearer"))
      return refusal
    }
    do throws(AccountStoreError) {
      return path == Self.path ? try await answerMany(request) : try await answerOne(request, path)
    } catch {
      logger.error("the account store does not answer", ["cause": .describing(error)])
      var refusal = HTTPResponse.refusal(503, "unavailable", "Nobody knows now. Do not send; ask again.")
      refusal.headers.append(("Retry-After", "5"))
      return refusal
    }
  }

  /// Where it all lies.
  private static let path = "/v1/email-relay"

  /// Compares digests: neither the time it takes nor the token's length says how much of a guess was right.
  private func isAllowed(_ request: HTTPRequest) -> Bool {
    guard let value = request.header("Authorization"), value.utf8.count <= 4096,
      let blank = value.firstIndex(of: " "), value[..<blank].lowercased() == "bearer"
    else { return false }
    return SHA256.digest(of: Array(value[value.index(after: blank)...].utf8)).matches(token)
  }

  private func answerOne(_ request: HTTPRequest, _ path: String) async throws(AccountStoreError) -> HTTPResponse {
    guard request.hasMethod("GET") || request.hasMethod("HEAD") else { return .wrongMethod("GET, HEAD") }
    let parts = path.dropFirst(Self.path.utf8.count + 1).split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let team = TeamID(String(parts[0])),
      let subject = String(percentDecoding: parts[1]).flatMap(AppleSubject.init)
    else { return .refusal(400, "malformed", "The path is \(Self.path)/TEAM/SUB, the sub percent-encoded.") }
    let account = Account(team: team, subject: subject)
    guard let knowledge = try await store.relayStates(of: [account]).first else { return .nobodyKnows }
    let body = knowledge.json(of: account).bytes
    let tag = "\"\(SHA256.digest(of: body).description.prefix(32))\""
    let headers = [("ETag", tag), ("Cache-Control", "private, no-cache")]
    // A condition counts only where the answer would be 200 without it (RFC 9110, 13.2.1).
    if knowledge.status == 200, let known = request.header("If-None-Match"), known.namesTag(tag) {
      return HTTPResponse(status: 304, headers: headers)
    }
    var response = HTTPResponse.json(body, status: knowledge.status)
    response.headers += headers
    return response
  }

  private func answerMany(_ request: HTTPRequest) async throws(AccountStoreError) -> HTTPResponse {
    guard request.hasMethod("POST") else { return .wrongMethod("POST") }
    switch await request.readBody(upTo: Self.largestBody) {
    case .complete: break
    case .refused(let refusal):
      return .refusal(refusal.status, "malformed", "The body cannot be read, or is too large.")
    case .lost: return HTTPResponse(status: 408)
    }
    guard let accounts = request.withBody({ body in RelayQuestion.accounts(in: body) }) else {
      return .refusal(
        400, "malformed", #"The body is {"accounts":[{"team":"…","sub":"…"}]} with 1 to \#(Self.mostAccounts) of them."#
      )
    }
    var failures: [AccountStoreError] = []
    let states = try await states(of: accounts[...], &failures)
    if let failure = failures.first {
      guard failures.count < accounts.count else { throw failure }
      logger.error(
        "what is kept of some accounts cannot be read: ask siwa store integrity",
        ["accounts": .integer(failures.count), "cause": .describing(failure)])
    }
    let answers = zip(accounts, states).map { account, knowledge in
      knowledge?.json(of: account) ?? account.json(maySend: false, status: "unavailable", since: nil)
    }
    var response = HTTPResponse.json(JSONValue.object([.init("accounts", .array(answers))]).bytes)
    response.headers.append(("Cache-Control", "no-store"))
    return response
  }

  /// What is known of each account; nil where what is kept of it cannot be read, of which `failures` say why. Those are
  /// found by halving: one damaged record must not keep the mail from everybody else in the question. Throws where there
  /// are too many of them: then it is the store that is damaged.
  private func states(
    of accounts: ArraySlice<Account>, _ failures: inout [AccountStoreError]
  ) async throws(AccountStoreError) -> [RelayKnowledge?] {
    do throws(AccountStoreError) {
      return try await store.relayStates(of: Array(accounts))
    } catch {
      guard error.code == .sealBroken || error.code == .damaged else { throw error }
      guard accounts.count > 1 else {
        failures.append(error)
        guard failures.count <= Self.mostUnreadable else { throw error }
        return [nil]
      }
      let middle = accounts.startIndex + accounts.count / 2
      return try await states(of: accounts[..<middle], &failures) + states(of: accounts[middle...], &failures)
    }
  }
}

extension RelayKnowledge {
  /// 404 for whom nobody has spoken of, 410 for whom was erased.
  fileprivate var status: Int {
    switch self {
    case .known: 200
    case .unknown: 404
    case .erased: 410
    }
  }

  fileprivate func json(of account: Account) -> JSONValue {
    switch self {
    case .known(let state):
      account.json(maySend: state.status == .enabled, status: state.status.rawValue, since: state.since)
    case .unknown: account.json(maySend: false, status: "unknown", since: nil)
    case .erased(let since): account.json(maySend: false, status: "erased", since: since)
    }
  }
}

extension Account {
  fileprivate func json(maySend: Bool, status: String, since: Timestamp?) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("team", .string(team.text)), .init("sub", .string(subject.text)), .init("may_send", .boolean(maySend)),
      .init("status", .string(status)),
    ]
    if let since { members.append(.init("since", .integer(since.milliseconds))) }
    return .object(members)
  }
}

extension HTTPResponse {
  fileprivate static func refusal(_ status: Int, _ error: String, _ description: String) -> HTTPResponse {
    .json((["error": .string(error), "description": .string(description)] as JSONValue).bytes, status: status)
  }

  fileprivate static func wrongMethod(_ allowed: String) -> HTTPResponse {
    var response = refusal(405, "wrong-method", "This takes \(allowed).")
    response.headers.append(("Allow", allowed))
    return response
  }

  fileprivate static let nobodyKnows = refusal(503, "unavailable", "Nobody knows now. Do not send; ask again.")
}

extension String {
  /// Whether a list of entity tags, as `If-None-Match` has it, names this one (RFC 9110, section 13.1.2: weakly).
  fileprivate func namesTag(_ tag: String) -> Bool {
    self == "*"
      || split(separator: ",").contains { item in
        let item = item.drop { $0 == " " }.prefix { $0 != " " }
        return item == tag || item == "W/" + tag
      }
  }
}
