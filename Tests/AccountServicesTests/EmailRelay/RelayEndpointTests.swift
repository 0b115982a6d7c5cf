import AccountEvents
import AccountServices
import AccountStore
import Configuration
import ConsumerSupport
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import Telemetry
import TestSupport
import Testing

/// What mailers are told, over a real store and a real socket.
@Loop @Suite(.timeLimit(.minutes(30))) struct RelayEndpointTests {
  private static let token = "a-token-of-more-than-thirty-two-characters"
  private static let team = "A1B2C3D4E5"

  /// A server over a store that knows four people, three of them by an event.
  @Loop
  private final class Mailer {
    let url: String
    let client: HTTPClient
    /// What was asked and answered, for the schema.
    private(set) var answers: [Answer] = []

    init(_ address: SocketAddress) {
      url = "http://\(address)"
      client = HTTPClient(
        HTTPClientConfiguration(
          userAgent: "mailer", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300),
          maximumConnections: 4, maximumRequests: 16))
    }

    func get(_ subject: String, token: String? = RelayEndpointTests.token, tag: String? = nil) async throws
      -> HTTPClientResponse
    {
      let place = try #require(HTTPClientURL("\(url)/v1/email-relay/\(RelayEndpointTests.team)/\(subject)"))
      var headers = token.map { [("Authorization", "Bearer \($0)")] } ?? []
      if let tag { headers.append(("If-None-Match", tag)) }
      let response = try await client.send(
        .get(place, headers: headers, within: .seconds(300), maximumBodySize: 65_536))
      note("GET", "/v1/email-relay/{team}/{sub}", response)
      return response
    }

    func post(_ body: String) async throws -> HTTPClientResponse {
      let place = try #require(HTTPClientURL("\(url)/v1/email-relay"))
      let response = try await client.send(
        .post(
          Array(body.utf8), to: place, headers: [("Authorization", "bearer \(RelayEndpointTests.token)")],
          isRepeatable: true, within: .seconds(300), maximumBodySize: 1 << 20))
      note("POST", "/v1/email-relay", response)
      return response
    }

    private func note(_ method: String, _ path: String, _ response: HTTPClientResponse) {
      answers.append(
        Answer(
          method: method, path: path, status: response.status,
          body: String(decoding: response.body, as: UTF8.self)))
    }
  }

  private struct Answer: Encodable {
    let method, path: String
    let status: Int
    let body: String
  }

  private func withMailer(_ body: @Loop (Mailer, WatchedStore) async throws -> Void) async throws {
    let files = TemporaryDirectory()
    let key = try #require(MasterKey(try SecureRandom.bytes(32)))
    try await SQLiteAccountStore.begin(files.path + "/store.sqlite", key)
    let store = WatchedStore(try await SQLiteAccountStore.open(files.path + "/store.sqlite", key))
    try await know([("enabled", "ada"), ("disabled", "bob"), ("erased", "cleo"), ("enabled", "d/%n")], store)
    let registry = MetricsRegistry()
    let logger = CapturedLog().logger()
    let endpoint = RelayEndpoint(store, token: Self.token, registry: registry, logger: logger)
    let server = try EndpointServer(
      .loopback(port: 0), tls: nil, RelayEndpoint.bounds, registry: registry, logger: logger, now: { .now },
      handler: { request in await endpoint.respond(to: request) })
    let running = Task(executorPreference: Loop.executor) { await server.run() }
    let result: Result<Void, any Error>
    do {
      try await body(Mailer(server.address), store)
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await server.drain(within: .seconds(300))
    await running.value
    await store.close()
    try result.get()
  }

  private func know(_ states: [(String, String)], _ store: any AccountStore) async throws {
    for (number, (state, user)) in states.enumerated() {
      let event = AccountEvent.sample(number, of: user)
      let address = try #require(RelayAddress("\(number)@privaterelay.appleid.com"))
      let status: RelayState.Status = state == "disabled" ? .disabled : .enabled
      let change = RelayState(status: status, address: address, isPrivate: true, since: event.occurredAt)
      _ = try await store.settle(
        [
          Settlement(
            of: .of(event, store), by: .emailRelay, outcome: "state-kept", changes: [.setRelay(change)])
        ],
        at: event.occurredAt)
      guard state == "erased" else { continue }
      let end = AccountEvent.sample(number + 100, of: user, .accountDelete)
      _ = try await store.settle(
        [
          Settlement(
            of: .of(end, store), by: .dataEraser, outcome: "account-erased", changes: [.eraseAccount(isFinal: true)])
        ],
        at: end.occurredAt)
    }
  }

  private func text(_ response: HTTPClientResponse) -> String { String(decoding: response.body, as: UTF8.self) }

  @Test(Python.isThere) func answersAsItsDocumentSays() async throws {
    try await withMailer { mailer, store in
      let enabled = try await mailer.get("ada")
      #expect(enabled.status == 200)
      #expect(
        text(enabled)
          == #"{"team":"A1B2C3D4E5","sub":"ada","may_send":true,"status":"enabled","since":1700000000000}"#)
      let disabled = try await mailer.get("bob")
      #expect(disabled.status == 200 && text(disabled).contains(#""may_send":false,"status":"disabled","since":"#))
      let unknown = try await mailer.get("nobody")
      #expect(unknown.status == 404 && text(unknown).hasSuffix(#""may_send":false,"status":"unknown"}"#))
      let erased = try await mailer.get("cleo")
      #expect(erased.status == 410 && text(erased).contains(#""may_send":false,"status":"erased","since":"#))
      #expect(try await mailer.get("d%2F%25n").status == 200, "a sub that has to be encoded")
      for subject in ["", "a/b", "%zz", "%4", "%20", "a%22b"] { #expect(try await mailer.get(subject).status == 400) }

      let many = try await mailer.post(
        #"{"accounts":[{"team":"A1B2C3D4E5","sub":"bob"},{"sub":"nobody","team":"A1B2C3D4E5"},"#
          + #"{"team":"A1B2C3D4E5","sub":"ada"}]}"#)
      #expect(many.status == 200)
      #expect(
        text(many).split(separator: "may_send").dropFirst().map { $0.hasPrefix(#"":true"#) } == [false, false, true])
      let one = #"{"team":"A1B2C3D4E5","sub":"ada"}"#
      let most = Array(repeating: one, count: 1000).joined(separator: ",")
      #expect(try await mailer.post(#"{"accounts":[\#(most)]}"#).status == 200)
      for body in [
        "", "{}", "[]", #"{"accounts":[]}"#, #"{"accounts":[{"team":"A1B2C3D4E5"}]}"#,
        #"{"accounts":[{"team":"a","sub":"b"}]}"#, #"{"accounts":[\#(one)],"accounts":[\#(one)]}"#,
        #"{"accounts":[\#(most),\#(one)]}"#, #"{"accounts":[\#(one)],"more":1}"#,
      ] { #expect(try await mailer.post(body).status == 400, "\(body.prefix(60))") }
      #expect(try await mailer.post(String(repeating: " ", count: 600_000)).status == 413)

      #expect(try await mailer.get("ada", token: nil).status == 401)
      #expect(try await mailer.get("ada", token: String(Self.token.dropLast())).status == 401)
      #expect(try await mailer.get("ada", token: Self.token + "x").header("WWW-Authenticate") == "Bearer")

      await store.close()
      let away = try await mailer.get("ada")
      #expect(away.status == 503 && away.header("Retry-After") == "5" && !text(away).contains("may_send"))

      let input = try JSONEncoder().encode(mailer.answers)
      let check = try await Python.run("Tests/AccountServicesTests/Python/check_openapi.py", input: [UInt8](input))
      #expect(check.end == .exit(0), "\(check.errors)")
    }
  }

  @Test func saysThatNothingHasChangedUntilItHas() async throws {
    try await withMailer { mailer, store in
      let first = try await mailer.get("ada")
      let tag = try #require(first.header("ETag"))
      let same = try await mailer.get("ada", tag: "\"other\", W/\(tag)")
      #expect(same.status == 304 && same.body.isEmpty && same.header("ETag") == tag)
      try await know(
        [("enabled", "x"), ("enabled", "y"), ("enabled", "z"), ("enabled", "v"), ("disabled", "ada")], store)
      let changed = try await mailer.get("ada", tag: tag)
      #expect(changed.status == 200 && changed.header("ETag") != tag)
      // A condition takes the place of a 200 alone.
      for (subject, status) in [("nobody", 404), ("cleo", 410)] {
        let tag = try #require(try await mailer.get(subject).header("ETag"))
        for known in [tag, "*"] { #expect(try await mailer.get(subject, tag: known).status == status) }
      }
    }
  }

  /// A seal that is broken, or whatever else concerns one record alone.
  @Test(Python.isThere) func whatIsKeptOfOneAccountAndCannotBeReadKeepsNobodyElseFromAnAnswer() async throws {
    try await withMailer { mailer, store in
      let people = (0..<40).map { $0 == 17 ? "bob" : $0 == 30 ? "cleo" : "user-\($0)" } + ["ada"]
      let question = people.map { #"{"team":"A1B2C3D4E5","sub":"\#($0)"}"# }.joined(separator: ",")
      store.beforeTelling = { accounts throws(AccountStoreError) in
        if accounts.contains(where: { $0.subject.text == "bob" }) { throw AccountStoreError(.sealBroken, "told to") }
      }
      let answer = try await mailer.post(#"{"accounts":[\#(question)]}"#)
      #expect(answer.status == 200)
      let states = text(answer).split(separator: #"{"team":"#).dropFirst().map(String.init)
      #expect(states.count == people.count)
      for (person, state) in zip(people, states) {
        let status = ["bob": "unavailable", "cleo": "erased", "ada": "enabled"][person] ?? "unknown"
        #expect(state.contains(#""sub":"\#(person)","may_send":\#(person == "ada"),"status":"\#(status)""#), "\(state)")
      }
      #expect(store.counts[.relayStates] ?? 0 <= 2 * 6 + 1, "it is halved: \(store.counts)")
      #expect(try await mailer.get("bob").status == 503)
      let bob = #"{"team":"A1B2C3D4E5","sub":"bob"}"#
      #expect(try await mailer.post(#"{"accounts":[\#(bob),\#(bob)]}"#).status == 503, "nobody is left to answer for")

      // Where it is not a record or two, it is the store, and nobody is asked for one by one.
      let before = store.counts[.relayStates] ?? 0
      store.beforeTelling = { accounts throws(AccountStoreError) in
        if accounts.contains(where: { $0.subject.text != "ada" }) { throw AccountStoreError(.damaged, "told to") }
      }
      #expect(try await mailer.post(#"{"accounts":[\#(question)]}"#).status == 503)
      #expect((store.counts[.relayStates] ?? 0) - before < 40, "\(store.counts)")

      let input = try JSONEncoder().encode(mailer.answers)
      let check = try await Python.run("Tests/AccountServicesTests/Python/check_openapi.py", input: [UInt8](input))
      #expect(check.end == .exit(0), "\(check.errors)")
    }
  }

  @Test func namesWhatIsWrongWithItsSettings() {
    let files = TemporaryDirectory()
    let schema = ConfigurationSchema(prefix: "SIWA", defaultFile: "/nowhere").adding("r", EmailRelaySettings.self)
    func faults(_ text: String) -> String {
      do {
        _ = try schema.load(
          EmailRelaySettings.self, from: ConfigurationSources(file: files.write("siwa.yaml", text)))
        return ""
      } catch {
        return "\(error)"
      }
    }
    let (token, short) = (files.write("token", Self.token), files.write("short", "secret"))
    let certificate = files.write("certificate", "")
    #expect(faults("email-relay: { token: \(token) }") == "")
    #expect(faults("email-relay: {}").contains("email-relay.token: missing"))
    #expect(faults("email-relay: { token: \(short) }").contains("expected 32 to 4096 visible ASCII characters"))
    #expect(faults("email-relay: { token: \(token), listen: '0.0.0.0:1' }").contains("the token wants TLS"))
    #expect(
      faults("email-relay: { token: \(token), certificate: \(certificate) }").contains(
        "email-relay.private-key: missing"))
  }
}
