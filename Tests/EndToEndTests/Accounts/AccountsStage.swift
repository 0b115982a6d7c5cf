import AccountEvents
import AccountServices
import AccountStore
import AppleID
import AppleSimulator
import Configuration
import Cryptography
import EventLoop
import Foundation
import Glibc
import HTTPClient
import HTTPServer
import TestSupport
import Testing

/// Everything around `siwa-accounts`: a simulated Apple over TLS, a store, two callers, and the file that configures it.
@Loop
final class AccountsStage {
  nonisolated static let (team, app, web) = ("A1B2C3D4E5", "com.example.app", "com.example.web")
  nonisolated static let (otherTeam, otherApp) = ("F1B2C3D4E5", "org.example.app")

  let apple: SimulatedApple
  let files: TemporaryDirectory
  let settings: StoreSettings
  private(set) var environment: [String: String]
  /// What the callers `shop` and `other` show.
  let tokens: (shop: String, other: String)
  /// All that was answered, for a check against the OpenAPI document.
  private(set) var answers: [Answer] = []
  private let server: SimulatedAppleServer
  private let client: HTTPClient
  private let endpoints: AppleTokenEndpoints

  /// An answer, and what it answers.
  struct Answer: Encodable {
    let method, path: String
    let status: Int
    let body: String
    let headers: [String: String]
    let asked: String?
  }

  /// Without `brokers` there is no Kafka: people sign in all the same. The store is in a database of PostgreSQL's where
  /// one is named, as libpq names it.
  static func run(
    brokers: String = "127.0.0.1:1", postgreSQL: String? = nil, _ body: @Loop (AccountsStage) async throws -> Void
  ) async throws {
    let stage = try await AccountsStage(brokers, postgreSQL)
    try await withThrowingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [server = stage.server] in await server.run() }
      defer { group.cancelAll() }
      let migrated = try await stage.siwa("store", "begin")
      try #require(migrated.end == .exit(0), "\(migrated)")
      try await body(stage)
    }
  }

  private init(_ brokers: String, _ postgreSQL: String?) async throws {
    files = TemporaryDirectory()
    let pair = try SelfSignedCertificate(
      for: ["localhost", "127.0.0.1"], validFrom: Timestamp.now.milliseconds / 1000 - 3600, seconds: 3 * 86_400)
    let (certificate, key) = (
      files.write("certificate.pem", pair.certificatePEM), files.write("key.pem", pair.privateKeyPEM)
    )
    apple = SimulatedApple(
      ring: Stage.ring, issuer: AppleNotification.appleIssuer, trustAnchors: .systemAnd(file: certificate),
      clock: { .now })
    server = try SimulatedAppleServer(
      apple, port: 0, tls: TLSServerConfiguration(certificateFile: certificate, privateKeyFile: key))
    client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "tests", trustAnchors: .systemAnd(file: certificate), proxy: .none, connectTimeout: .seconds(300),
        maximumConnections: 8, maximumRequests: 64))
    let (own, others) = (
      try apple.enroll(team: Self.team, clients: [Self.app, Self.web]),
      try apple.enroll(team: Self.otherTeam, clients: [Self.otherApp])
    )
    _ = files.write("AuthKey.p8", own.privateKeyPEM)
    _ = files.write("OtherKey.p8", others.privateKeyPEM)
    let masterKey = files.write("master-key", try MasterKey.newText())
    try #require(unsafe chmod(masterKey, 0o600) == 0)
    if let postgreSQL { _ = files.write("postgresql", postgreSQL) }
    settings = StoreSettings(
      database: postgreSQL.map { .postgresql(Secret($0), connections: 2) }
        ?? .sqlite(path: files.path + "/store.sqlite"), masterKeyFile: masterKey)

    var made: [(token: String, digest: String)] = []
    for _ in 1...2 {
      let words = try await RunningProgram.run("siwa", ["accounts", "create-token"]) { program in
        _ = try await program.untilEnd()
        return program.output.split(whereSeparator: \.isWhitespace).map(String.init)
      }
      try #require(words.count == 4 && words[0] == "token" && words[2] == "sha256")
      made.append((words[1], words[3]))
    }
    tokens = (made[0].token, made[1].token)
    let configuration = """
      teams:
        \(Self.team): { audiences: [\(Self.app), \(Self.web)], key-id: \(own.id), private-key: AuthKey.p8 }
        \(Self.otherTeam): { audiences: [\(Self.otherApp)], key-id: \(others.id), private-key: OtherKey.p8 }
      apple:
        keys: \(server.keysURL)
        keys-file: apple-keys.json
        token: \(server.tokenURL)
        revoke: \(server.revocationURL)
        trusted-ca: certificate.pem
        deadline: 60s
      kafka: { bootstrap.servers: "\(brokers)" }
      store: { \(postgreSQL == nil ? "sqlite: store.sqlite" : "postgresql: postgresql"), master-key: master-key }
      accounts:
        listen: "127.0.0.1:0"
        admin: "127.0.0.1:0"
        certificate: certificate.pem
        private-key: key.pem
        drain: 300s
        callers:
          shop: { clients: [\(Self.app), \(Self.web)], tokens: [\(made[0].digest)] }
          other: { clients: [\(Self.otherApp)], tokens: [\(made[1].digest)] }
      """
    environment = ["SIWA_CONFIG": files.write("siwa.yaml", configuration), "SIWA_LOG_LEVEL": "debug"]
    endpoints = AppleTokenEndpoints(
      token: try #require(HTTPClientURL(server.tokenURL)),
      revocation: try #require(HTTPClientURL(server.revocationURL)),
      client: client,
      secrets: ClientSecrets(
        keys: [
          try #require(ClientID(Self.app)): TeamKey(
            team: try #require(TeamID(Self.team)), id: try #require(KeyID(own.id)),
            privateKey: try P256PrivateKey(pem: own.privateKeyPEM))
        ], audience: AppleNotification.appleIssuer, lifetime: .seconds(3600), now: { .now }),
      deadline: .seconds(300))
  }

  /// Runs the operator's program to its end.
  func siwa(_ words: String...) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.run("siwa", words, environment) { program in
      try await program.outcome()
    }
  }

  /// Runs `body` with the program, listening, then kills it if it still runs.
  func accounts(
    _ changes: [String: String] = [:], _ body: @Loop (RunningAccounts) async throws -> Void
  ) async throws {
    try await RunningProgram.run("siwa-accounts", [], environment.merging(changes) { $1 }) { program in
      let running = RunningAccounts(
        program: program, address: try await program.address("listen.address", saidWith: "accounts listens"),
        administration: Administration(
          try await program.address("listen.administration", saidWith: "accounts listens")))
      try await until { try await running.administration.get("/readyz").status == 200 }
      try await body(running)
    }
  }

  /// What Apple signs of somebody who signs in: the identity token of a sign-in that nobody keeps.
  func identityToken(of person: Person) async throws -> String {
    let code = try apple.signIn(person, to: Self.app)
    let grant = try await endpoints.exchange(
      try #require(AuthorizationCode(code)), redirectURI: nil, by: try #require(ClientID(Self.app)))
    guard case .granted(let tokens) = grant else { throw CancellationError() }
    try await endpoints.revoke(tokens.accessToken, of: try #require(ClientID(Self.app)))
    return try #require(tokens.identityToken).text
  }

  /// A refresh token of somebody's, as an application has got it that asked Apple itself.
  func refreshToken(of person: Person) async throws -> String {
    let code = try apple.signIn(person, to: Self.app)
    let grant = try await endpoints.exchange(
      try #require(AuthorizationCode(code)), redirectURI: nil, by: try #require(ClientID(Self.app)))
    guard case .granted(let tokens) = grant else { throw CancellationError() }
    return try #require(tokens.refreshToken).text
  }

  /// Revokes a token that the store has, as nobody of ours would.
  func revoke(_ token: StoredToken) async throws {
    try await endpoints.revoke(
      try #require(RefreshToken(token.token.value.text)), of: try #require(ClientID(Self.app)))
  }

  /// The body of a request for a sign-in with a new code.
  func request(_ person: Person, token: String, code: String? = nil) throws -> String {
    let code = try code ?? apple.signIn(person, to: Self.app)
    return #"{"identityToken":"\#(token)","authorizationCode":"\#(code)","clientId":"\#(Self.app)"}"#
  }

  /// Asks the program, and remembers the answer; `path` is the document's, `target` what stands in its place, `type` that of
  /// the body.
  func ask(
    _ running: RunningAccounts, _ method: String, _ path: String, target: String? = nil,
    isDocumented: Bool = true, as token: String?, key: String? = nil, more: [(name: String, value: String)] = [],
    type: String? = "application/json", _ body: String? = nil
  ) async throws -> (status: Int, text: String, headers: [String: String]) {
    var headers: [(name: String, value: String)] = []
    if let token { headers.append(("Authorization", "Bearer \(token)")) }
    if let key { headers.append(("Idempotency-Key", key)) }
    headers += more
    let url = try #require(HTTPClientURL("https://\(running.address)\(target ?? path)"))
    let response = try await client.send(
      method == "GET"
        ? .get(url, headers: headers, within: .seconds(300), maximumBodySize: 1 << 20)
        : .post(
          Array((body ?? "").utf8), to: url, headers: headers + (type.map { [("Content-Type", $0)] } ?? []),
          isRepeatable: false, within: .seconds(300), maximumBodySize: 1 << 20))
    let text = String(decoding: response.body, as: UTF8.self)
    let fields = Dictionary(
      ["Content-Type", "Retry-After", "WWW-Authenticate", "Allow"].compactMap { name in
        response.header(name).map { (name, $0) }
      }, uniquingKeysWith: { first, _ in first })
    if isDocumented {
      answers.append(
        Answer(
          method: method, path: path, status: response.status, body: text, headers: fields,
          asked: response.status == 200 ? body : nil))
    }
    return (response.status, text, fields)
  }

  /// Has what a stream of events said held against the OpenAPI document, too.
  func note(stream text: String) {
    answers.append(
      Answer(
        method: "GET", path: "/v1/events", status: 200, body: text, headers: ["Content-Type": "text/event-stream"],
        asked: nil))
  }

  /// Holds all that was answered against the OpenAPI document.
  func checkAnswers() async throws {
    let check = try await Python.run(
      "Tests/AccountServicesTests/Python/check_openapi.py", ["accounts"],
      input: [UInt8](try JSONEncoder().encode(answers)))
    #expect(check.end == .exit(0), "\(check.errors)")
  }

  /// Signs somebody in.
  func signIn(
    _ running: RunningAccounts, _ body: String, key: String? = nil, as token: String? = nil,
    more: [(name: String, value: String)] = [], type: String? = "application/json"
  ) async throws -> (status: Int, text: String, headers: [String: String]) {
    try await ask(
      running, "POST", "/v1/sign-ins", as: token ?? tokens.shop, key: key, more: more, type: type, body)
  }

  /// Where codes and refresh tokens are exchanged.
  var tokenURL: String { server.tokenURL }

  /// Where Apple asks people to sign in.
  var authorizationURL: String { server.authorizationURL }

  /// What a browser makes of an address at Apple's: somebody signs in, and Apple's page posts this form.
  func authorize(_ address: String, as account: String) async throws -> String {
    let asked = try #require(URLComponents(string: address)?.queryItems).map { ($0.name, $0.value ?? "") }
    let person = [("account", account), ("address", "hide"), ("decision", "continue")]
    let page = try await client.send(
      .post(
        form: asked + person, to: try #require(HTTPClientURL(server.authorizationURL)), headers: [],
        isRepeatable: false,
        within: .seconds(300), maximumBodySize: 1 << 20))
    let text = String(decoding: page.body, as: UTF8.self)
    try #require(page.status == 200, "\(text)")
    var form = URLComponents()
    form.queryItems = text.matches(of: #/name="([^"]*)" value="([^"]*)"/#).map { field in
      let value = field.2.replacing("&quot;", with: "\"").replacing("&amp;", with: "&")
      return URLQueryItem(name: String(field.1), value: String(value))
    }
    return try #require(form.percentEncodedQuery).replacing("+", with: "%2B")
  }

  /// Hands a request on, and the answer back.
  func forward(
    _ body: [UInt8], to address: String, _ headers: [(name: String, value: String)]
  ) async throws -> HTTPResponse {
    let answer = try await client.send(
      .post(
        body, to: try #require(HTTPClientURL(address)), headers: headers, isRepeatable: false, within: .seconds(300),
        maximumBodySize: 1 << 20))
    return HTTPResponse(
      status: answer.status, headers: [("Content-Type", answer.header("Content-Type") ?? "text/plain")],
      body: .bytes(answer.body))
  }

  /// What the store has of somebody.
  func stored(_ person: Person) async throws -> [StoredToken] {
    let store = try await settings.open()
    let tokens = try await store.tokens(
      of: Account(team: try #require(TeamID(Self.team)), subject: try #require(AppleSubject(person.subject))))
    await store.close()
    return tokens
  }
}

/// The program, listening.
struct RunningAccounts {
  let program: RunningProgram
  let address: SocketAddress
  let administration: Administration
}

extension String {
  /// The object that it is, in JSON.
  var object: [String: Any] {
    get throws { try #require(try JSONSerialization.jsonObject(with: Data(utf8)) as? [String: Any], "\(self)") }
  }
}
