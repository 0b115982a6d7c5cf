import AccountEvents
import AccountServices
import AccountStore
import AppleID
import AppleSimulator
import ConsumerSupport
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import TestSupport
import Testing

/// The token revoker, killed at every step that it makes, before a simulated Apple that goes on.
@Loop @Suite(.timeLimit(.minutes(30))) struct KilledRevokerTests {
  private nonisolated static let now = Timestamp.sample(1_800_000_000_000)

  @Test func whereverItIsKilledEachAuthorizationIsEndedAndSaidSo() async throws {
    try await withApple { apple, server, key in
      var step = 1
      while try await isKilled(at: step, apple, server, key) { step += 1 }
      #expect(step > 40, "there are fewer steps than there should be")
    }
  }

  @Test func killedWhileAppleHasTheRequestItAsksAgain() async throws {
    try await withApple { apple, server, key in
      for place in ["revocation", "validation"] {
        let trial = try await Trial(apple, server, key)
        let asked = (apple.revocationsAsked, apple.tokensAsked)
        if place == "revocation" { apple.revocationsDelay = .seconds(3600) } else { apple.tokensDelay = .seconds(3600) }
        try await RunningProgram.run("killed-consumer", [trial.directory.path, "0", "revoker"], [:]) { program in
          try await until {
            place == "revocation" ? apple.revocationsAsked > asked.0 : apple.tokensAsked > asked.1
          }
          await program.kill()
        }
        (apple.revocationsDelay, apple.tokensDelay) = (.zero, .zero)
        #expect(try await trial.run(at: 0) == .exit(0))
        try await trial.expectTheWhole(kills: 1, "killed in the \(place)")
      }
    }
  }

  private func isKilled(
    at step: Int, _ apple: SimulatedApple, _ server: SimulatedAppleServer, _ key: DeveloperKey
  ) async throws -> Bool {
    let trial = try await Trial(apple, server, key)
    let end = try await trial.run(at: step)
    guard end != .exit(0) else { return false }
    #expect(end == .signal(SIGKILL), "step \(step)")
    #expect(try await trial.run(at: 0) == .exit(0), "step \(step)")
    try await trial.expectTheWhole(kills: 1, "killed at \(step)")
    return true
  }

  private func withApple(
    _ body: @Loop (SimulatedApple, SimulatedAppleServer, DeveloperKey) async throws -> Void
  ) async throws {
    Signals.block([])  // SIGPIPE must not end the tests
    let apple = SimulatedApple(
      ring: try KeyRing(generating: 1), issuer: AppleNotification.appleIssuer, trustAnchors: .system,
      clock: { Self.now })
    let server = try SimulatedAppleServer(apple, port: 0, tls: nil)
    let event = AccountEvent.sample(1)
    let key = try apple.enroll(team: event.team.text, clients: [event.audience.text])
    let serving = Task(executorPreference: Loop.executor) { await server.run() }
    let result: Result<Void, any Error>
    do { result = .success(try await body(apple, server, key)) } catch { result = .failure(error) }
    serving.cancel()
    await serving.value
    try result.get()
  }

  /// One life of a store, from the sign-ins to the end.
  @Loop
  private final class Trial {
    let directory = TemporaryDirectory()
    private let apple: SimulatedApple
    private let masterKey: MasterKey
    private let person = Person(named: UUID().uuidString)
    private let askedBefore: Int

    init(_ apple: SimulatedApple, _ server: SimulatedAppleServer, _ key: DeveloperKey) async throws {
      self.apple = apple
      askedBefore = apple.revocationsAsked
      masterKey = try #require(MasterKey([UInt8](repeating: 7, count: 32)))
      _ = directory.write("apple", "\(server.tokenURL)\n\(server.revocationURL)\n\(key.id)\n")
      _ = directory.write("key.p8", key.privateKeyPEM)
      try await SQLiteAccountStore.begin("\(directory.path)/siwa.db", masterKey)
      let store = try await SQLiteAccountStore.open("\(directory.path)/siwa.db", masterKey)
      for (name, person) in [("ada", person), ("bob", Person(named: "bob")), ("cleo", Person(named: "cleo"))] {
        let event = AccountEvent.sample(0, of: name)
        let token = try await refreshToken(of: person, server, key)
        let kept = NewToken(kind: .refresh, client: event.audience, value: try #require(SecretToken(token)))
        // In a second before that of the events: none of them may be of a younger authorization.
        let signedInAt = event.occurredAt - .seconds(1)
        #expect(try await store.recordSignIn(event.account, at: signedInAt, tokens: [kept]) == [])
      }
      await store.close()
    }

    private func refreshToken(
      of person: Person, _ server: SimulatedAppleServer, _ key: DeveloperKey
    ) async throws -> String {
      let event = AccountEvent.sample(1)
      let teamKey = TeamKey(
        team: event.team, id: try #require(KeyID(key.id)), privateKey: try P256PrivateKey(pem: key.privateKeyPEM))
      let endpoints = AppleTokenEndpoints(
        token: try #require(HTTPClientURL(server.tokenURL)),
        revocation: try #require(HTTPClientURL(server.revocationURL)),
        client: HTTPClient(
          HTTPClientConfiguration(
            userAgent: "siwa-tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300),
            maximumConnections: 1, maximumRequests: 4)),
        secrets: ClientSecrets(
          keys: [event.audience: teamKey], audience: AppleNotification.appleIssuer, lifetime: .seconds(3600),
          now: { KilledRevokerTests.now }),
        deadline: .seconds(300))
      let code = try #require(AuthorizationCode(try apple.signIn(person, to: event.audience.text)))
      guard case .granted(let grant) = try await endpoints.exchange(code, redirectURI: nil, by: event.audience) else {
        throw CancellationError()
      }
      return try #require(grant.refreshToken).text
    }

    func run(at step: Int) async throws -> RunningProgram.End {
      try await RunningProgram.run("killed-consumer", [directory.path, String(step), "revoker"], [:]) { program in
        try await program.untilEnd()
      }
    }

    /// Everything has happened, and nothing more often than it was killed.
    func expectTheWhole(kills: Int, _ comment: Comment) async throws {
      #expect(!apple.isAuthorized(person, for: AccountEvent.sample(1).audience.text), comment)
      #expect(1...1 + kills ~= apple.revocationsAsked - askedBefore, comment)
      let lines = try String(contentsOfFile: "\(directory.path)/said", encoding: .utf8).split(separator: "\n")
      let said = try lines.map { line in
        let words = line.split(separator: " ", maxSplits: 1)
        #expect(words.first == "apple.account-outcomes.v1", comment)
        let outcome = try AccountOutcome(decoding: Array(try #require(words.last).utf8))
        return "\(outcome.cause.id) \(outcome.reason?.rawValue ?? outcome.name.rawValue)"
      }
      let expected = ["tokens-revoked", "tokens-revoked", "tokens-revoked", "no-token"]
      for (number, outcome) in zip([1, 3, 4, 5], expected) {
        for word in [outcome, "sessions-ended"] {
          #expect(1...1 + kills ~= said.count { $0 == "event-\(number) \(word)" }, comment)
        }
      }
      #expect(1...1 + kills ~= said.count { $0 == "event-2 echo" }, comment)
      #expect(Set(said).count == 9, "\(said), \(comment)")
      #expect(try String(contentsOfFile: "\(directory.path)/committed", encoding: .utf8) == "5\n", comment)
      let store = try await SQLiteAccountStore.open("\(directory.path)/siwa.db", masterKey)
      for name in ["ada", "bob", "cleo"] {
        #expect(try await store.tokens(of: AccountEvent.sample(1, of: name).account) == [], comment)
      }
      await store.close()
    }
  }
}
