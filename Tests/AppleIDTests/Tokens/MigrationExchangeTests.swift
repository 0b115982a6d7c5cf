import AccountEvents
import AppleID
import Cryptography
import EventLoop
import HTTPClient
import HTTPServer
import JSON
import TestSupport
import Testing

/// The requests and answers of Apple's articles "Transferring your apps and users to another team" and "Bringing new apps
/// and users into your team", as they go over the wire.
@Loop @Suite struct MigrationExchangeTests {
  nonisolated static let token = "beg5105ed7a4def32adec143038877c2b.0.nx.20LreF67Or9"
  nonisolated static let subject = "820417.faa325acbc78e1be1668ba852d492d8a.0219"
  nonisolated static let identifier = "760417.ebbf12acbc78e1be1668ba852d492d8a.1827"
  nonisolated static let address = "ep9ks2tnph@privaterelay.appleid.com"

  nonisolated static let granted = answer(
    "{\n  \"access_token\":\"\(token)\",\n  \"token_type\":\"Bearer\",\n  \"expires_in\":3600\n}")
  nonisolated static let generated = answer("{\n  \"transfer_sub\":\"\(identifier)\"\n}")
  nonisolated static let exchanged = answer(
    "{\n  \"sub\":\"\(subject)\",\n  \"email\": \"\(address)\",\n  \"is_private_email\" : true\n}")

  nonisolated static func answer(_ body: String, _ status: String = "200 OK", headers: String = "") -> String {
    "HTTP/1.1 \(status)\r\nContent-Type: application/json;charset=UTF-8\r\nCache-Control: no-store\r\nPragma: no-cache\r\n"
      + "\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  /// A request, taken apart.
  struct Received {
    let line: String
    let headers: [String: String]
    let fields: [String: String]
    let names: [String]

    init(_ text: String) throws {
      let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
      let lines = parts[0].split(separator: "\r\n").map(String.init)
      line = lines[0]
      headers = Dictionary(
        try lines.dropFirst().map { line in
          let colon = try #require(line.firstIndex(of: ":"))
          return (line[..<colon].lowercased(), String(line[colon...].dropFirst(2)))
        }, uniquingKeysWith: { "\($0) and \($1)" })
      names = parts[1].split(separator: "&").map { String($0.prefix { $0 != "=" }) }
      let form = try #require(FormFields(Array(parts[1].utf8)))
      fields = names.reduce(into: [:]) { $0[$1] = form[$1] }
    }
  }

  /// Apple as a script: what each path answers, one after another, the last one again and again.
  @Loop
  final class Apple {
    var tokens: [String], users: [String]
    /// A token that is not taken.
    var refused: String?
    /// Before each answer of the token endpoint.
    var beforeToken: @Loop () async -> Void = {}
    /// How many have begun to ask.
    var begun = 0
    private(set) var tokensAsked: [Received] = [], usersAsked: [Received] = []
    private var server: ScriptedServer?
    private let key: P256PrivateKey

    init(tokens: [String] = [granted], users: [String]) throws {
      (self.tokens, self.users) = (tokens, users)
      key = try P256PrivateKey()
      server = try ScriptedServer { [unowned self] peer in
        while let text = await peer.request() {
          guard let request = try? Received(text) else { return }
          await peer.send(await answer(request))
        }
      }
    }

    private func answer(_ request: Received) async -> String {
      guard request.line == "POST /auth/usermigrationinfo HTTP/1.1" else {
        tokensAsked.append(request)
        let answer = tokens.count > 1 ? tokens.removeFirst() : tokens[0]
        await beforeToken()
        return answer
      }
      usersAsked.append(request)
      if let refused, request.headers["authorization"] == "Bearer \(refused)" { return refusals[0] }
      return users.count > 1 ? users.removeFirst() : users[0]
    }

    func close() { server?.close() }

    func endpoint() throws -> AppleMigrationEndpoint {
      let origin = "http://127.0.0.1:\(try #require(server).port)"
      let key = TeamKey(team: Forge.team, id: try #require(KeyID("ABC123DEFG")), privateKey: key)
      return AppleMigrationEndpoint(
        token: try #require(HTTPClientURL("\(origin)/auth/token")),
        migration: try #require(HTTPClientURL("\(origin)/auth/usermigrationinfo")),
        client: TokensRig.client("/dev/null"),
        secrets: ClientSecrets(
          keys: [Forge.app: key], audience: "https://appleid.apple.com", lifetime: .seconds(3600), now: { Forge.now }),
        deadline: .seconds(300), now: { Forge.now })
    }
  }

  private func generate(_ endpoint: AppleMigrationEndpoint) async throws -> String? {
    try await endpoint.identifier(
      of: try #require(AppleSubject(Self.subject)), to: Forge.otherTeam, by: Forge.app)?.text
  }

  private func code(_ endpoint: AppleMigrationEndpoint) async throws -> AppleTokenError.Code? {
    do {
      _ = try await generate(endpoint)
      return nil
    } catch let error as AppleTokenError {
      return error.code
    }
  }

  private func checkSecret(_ secret: String?) throws {
    let parts = try #require(secret).split(separator: ".").map(String.init)
    try #require(parts.count == 3)
    let (header, claims) = (try #require(Base64URL.decode(parts[0])), try #require(Base64URL.decode(parts[1])))
    #expect(header == (["alg": "ES256", "kid": "ABC123DEFG"] as JSONValue).bytes)
    let issued = Forge.now.milliseconds / 1000
    #expect(
      claims
        == ([
          "iss": .string(Forge.team.text), "iat": .integer(issued), "exp": .integer(issued + 3600),
          "aud": "https://appleid.apple.com", "sub": .string(Forge.app.text),
        ] as JSONValue).bytes)
  }

  // MARK: The articles

  @Test func asksForATokenAsTheArticlesHaveIt() async throws {
    let apple = try Apple(users: [Self.generated])
    defer { apple.close() }
    _ = try await generate(try apple.endpoint())
    let request = try #require(apple.tokensAsked.first)
    #expect(request.line == "POST /auth/token HTTP/1.1")
    #expect(request.headers["content-type"] == "application/x-www-form-urlencoded")
    #expect(request.headers["user-agent"] == "siwa-tests" && request.headers["authorization"] == nil)
    #expect(request.names == ["grant_type", "scope", "client_id", "client_secret"])
    #expect(request.fields["grant_type"] == "client_credentials" && request.fields["scope"] == "user.migration")
    #expect(request.fields["client_id"] == Forge.app.text)
    try checkSecret(request.fields["client_secret"])
  }

  @Test func theSendingTeamAsksAsItsArticleHasIt() async throws {
    let apple = try Apple(users: [Self.generated])
    defer { apple.close() }
    #expect(try await generate(try apple.endpoint()) == Self.identifier)
    let request = try #require(apple.usersAsked.first)
    #expect(request.headers["content-type"] == "application/x-www-form-urlencoded")
    #expect(request.headers["authorization"] == "Bearer \(Self.token)")
    #expect(request.names == ["sub", "target", "client_id", "client_secret"])
    #expect(request.fields["sub"] == Self.subject && request.fields["target"] == Forge.otherTeam.text)
    #expect(request.fields["client_id"] == Forge.app.text)
    try checkSecret(request.fields["client_secret"])
    #expect(apple.tokensAsked.count == 1 && apple.usersAsked.count == 1)
  }

  @Test func theReceivingTeamAsksAsItsArticleHasIt() async throws {
    let apple = try Apple(users: [Self.exchanged])
    defer { apple.close() }
    let endpoint = try apple.endpoint()
    let identifier = try #require(TransferSubject(Self.identifier))
    let user = try #require(try await endpoint.account(of: identifier, by: Forge.app))
    #expect(user.subject.text == Self.subject && user.address?.text == Self.address && user.isPrivate)
    let request = try #require(apple.usersAsked.first)
    #expect(request.headers["content-type"] == "application/x-www-form-urlencoded")
    #expect(request.headers["authorization"] == "Bearer \(Self.token)")
    #expect(request.names == ["transfer_sub", "client_id", "client_secret"])
    #expect(request.fields["transfer_sub"] == Self.identifier)
    #expect(request.fields["client_id"] == Forge.app.text)
    try checkSecret(request.fields["client_secret"])
  }

  // MARK: A token that Apple does not take

  nonisolated static let refusals: [String] = [
    answer("", "401 Unauthorized", headers: "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n"),
    answer(#"{"error":"invalid_token"}"#, "401 Unauthorized"),
    answer(#"{"error":"invalid_token"}"#, "400 Bad Request"), answer(#"{"error":"invalid_grant"}"#, "400 Bad Request"),
  ]

  nonisolated private static let another = granted.replacing(token, with: String(token.reversed()))

  @Test(arguments: refusals) func aTokenThatIsRefusedIsRenewedOnce(refusal: String) async throws {
    let apple = try Apple(tokens: [Self.granted, Self.another], users: [refusal, Self.generated])
    defer { apple.close() }
    let endpoint = try apple.endpoint()
    #expect(try await generate(endpoint) == Self.identifier)
    #expect(
      apple.usersAsked.map { $0.headers["authorization"] }
        == ["Bearer \(Self.token)", "Bearer \(String(Self.token.reversed()))"])
    #expect(apple.tokensAsked.count == 2)
    // Where the new one is refused too, that is all; who comes then gets another.
    apple.users = [refusal]
    #expect(try await code(endpoint) == .invalidToken)
    #expect(apple.usersAsked.count == 4 && apple.tokensAsked.count == 3)
    apple.users = [Self.generated]
    #expect(try await generate(endpoint) == Self.identifier)
    #expect(apple.usersAsked.count == 5 && apple.tokensAsked.count == 4)
  }

  @Test func afterTheRenewalARefusalOfTheUserIsOne() async throws {
    let apple = try Apple(
      users: [Self.refusals[0], Self.answer(#"{"error":"invalid_request"}"#, "400 Bad Request")])
    defer { apple.close() }
    #expect(try await generate(try apple.endpoint()) == nil)
    #expect(apple.usersAsked.count == 2 && apple.tokensAsked.count == 2)
  }

  /// Faults of an operator's, each told apart, in which nothing is asked again.
  nonisolated static let faults: [(String, AppleTokenError.Code)] = [
    (answer(#"{"error":"invalid_client"}"#, "400 Bad Request"), .invalidClient),
    (answer(#"{"error":"unauthorized_client"}"#, "403 Forbidden"), .unauthorizedClient),
    (answer(#"{"error":"invalid_scope"}"#, "400 Bad Request"), .invalidScope),
    (answer("<html>", "403 Forbidden"), .forbidden),
  ]

  @Test(arguments: faults) func namesWhoIsNotLetIn(answer: String, code: AppleTokenError.Code) async throws {
    let apple = try Apple(users: [answer])
    defer { apple.close() }
    let endpoint = try apple.endpoint()
    await #expect { _ = try await generate(endpoint) } throws: { error in
      guard let error = error as? AppleTokenError else { return false }
      return error.code == code && error.remedy == .operator
        && error.detail.contains("com.example.app, signed by key ABC123DEFG of team A1B2C3D4E5: ")
    }
    #expect(apple.usersAsked.count == 1 && apple.tokensAsked.count == 1)
  }

  // MARK: Many at once

  /// What so many get who ask at once, while the token endpoint answers nobody before all of them wait.
  private func askAtOnce(_ count: Int, _ apple: Apple) async throws -> [Result<String?, AppleTokenError>] {
    let endpoint = try apple.endpoint()
    let waiting = Signal()
    apple.beforeToken = { if apple.begun < count { await waiting.wait() } }
    return await withTaskGroup(of: Result<String?, AppleTokenError>.self) { group in
      for _ in 0..<count {
        group.addTask(executorPreference: Loop.executor) { await self.ask(endpoint, beside: count, apple, waiting) }
      }
      var results: [Result<String?, AppleTokenError>] = []
      for await result in group { results.append(result) }
      return results
    }
  }

  private func ask(
    _ endpoint: AppleMigrationEndpoint, beside count: Int, _ apple: Apple, _ waiting: Signal
  ) async -> Result<String?, AppleTokenError> {
    apple.begun += 1
    if apple.begun == count { waiting.fire() }
    do {
      return .success(try await generate(endpoint))
    } catch {
      return (error as? AppleTokenError).map { .failure($0) } ?? .success(nil)
    }
  }

  @Test func oneRequestFetchesTheTokenForAllWhoWait() async throws {
    let apple = try Apple(users: [Self.generated])
    defer { apple.close() }
    #expect(try await askAtOnce(12, apple).map { try $0.get() } == Array(repeating: Self.identifier, count: 12))
    #expect(apple.tokensAsked.count == 1 && apple.usersAsked.count == 12)
  }

  @Test func aFetchThatFailsFailsForAllWhoWaitAndTheNextTriesAnew() async throws {
    let apple = try Apple(tokens: [Self.answer("", "503 Service Unavailable")], users: [Self.generated])
    defer { apple.close() }
    let failures = try await askAtOnce(12, apple).map { result in
      if case .failure(let error) = result { error.code } else { nil as AppleTokenError.Code? }
    }
    #expect(failures == Array(repeating: .unavailable, count: 12))
    #expect(apple.tokensAsked.count == 1 && apple.usersAsked.isEmpty)
    let endpoint = try apple.endpoint()
    #expect(try await code(endpoint) == .unavailable)
    apple.tokens = [Self.granted]
    #expect(try await generate(endpoint) == Self.identifier)
    #expect(apple.tokensAsked.count == 3)
  }

  @Test func oneRequestRenewsTheTokenForAllWhoWereRefused() async throws {
    let apple = try Apple(tokens: [Self.granted, Self.another], users: [Self.generated])
    defer { apple.close() }
    apple.refused = Self.token
    #expect(try await askAtOnce(12, apple).map { try $0.get() } == Array(repeating: Self.identifier, count: 12))
    #expect(apple.tokensAsked.count == 2 && apple.usersAsked.count == 24)
  }

  @Test func whoGivesUpWhileFetchingFailsNobodyElse() async throws {
    let apple = try Apple(users: [Self.generated])
    defer { apple.close() }
    let endpoint = try apple.endpoint()
    let asked = Signal(), never = Signal()
    apple.beforeToken = {
      guard apple.tokensAsked.count == 1 else { return }
      asked.fire()
      await never.wait()
    }
    let first = Task { @Loop in try await code(endpoint) }
    await asked.wait()
    let second = Task { @Loop in try await generate(endpoint) }
    let third = Task { @Loop in try await code(endpoint) }
    await Task.yield()
    third.cancel()
    first.cancel()
    #expect(try await first.value == .cancelled)
    #expect(try await second.value == Self.identifier)
    #expect(try await third.value == .cancelled)
    never.fire()
    #expect(apple.tokensAsked.count == 2 && apple.usersAsked.count == 1)
  }
}
