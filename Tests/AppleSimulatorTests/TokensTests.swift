import AccountEvents
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import JSON
import Synchronization
import Testing

/// The simulator's token endpoints, asked without any of our own code for asking Apple.
@Loop @Suite struct TokensTests {
  nonisolated static let client = "com.example.app"
  nonisolated static let team = "A1B2C3D4E5"

  private func secret(
    _ key: DeveloperKey, _ changes: [String: JSONValue] = [:], header: String? = nil, signedBy other: String? = nil
  ) throws -> String {
    try key.secret(
      of: Self.team, for: Self.client, at: .now, changes, header: header ?? #"{"alg":"ES256","kid":"KID"}"#,
      signedBy: other)
  }

  private func ask(
    _ rehearsal: Rehearsal, _ path: String, _ fields: [(String, String)]
  ) async throws -> (status: Int, members: [String: Any], body: [UInt8]) {
    let response = try await rehearsal.post(form: fields, to: path)
    let members = response.body.first == UInt8(ascii: "{") ? try jsonObject(response.body) : [:]
    return (response.status, members, response.body)
  }

  private func signIn(_ rehearsal: Rehearsal, _ credentials: [(String, String)]) async throws -> [String: Any] {
    let code = try rehearsal.apple.signIn(Person(named: "Ada"), to: Self.client)
    return try await ask(
      rehearsal, "/auth/token", credentials + [("grant_type", "authorization_code"), ("code", code)]
    ).members
  }

  @Test func itsTokensHaveApplesShape() async throws {
    try await Rehearsal.run { rehearsal in
      let key = try rehearsal.apple.enroll(team: Self.team, clients: [Self.client])
      let credentials = [("client_id", Self.client), ("client_secret", try secret(key))]
      let tokens = try await signIn(rehearsal, credentials)
      #expect(Set(tokens.keys) == ["access_token", "token_type", "expires_in", "refresh_token", "id_token"])
      #expect(tokens["token_type"] as? String == "Bearer")
      #expect(tokens["expires_in"] as? Int == 3600)
      let shape = #/[0-9a-f]{32}\.0\.[a-z]+\.[A-Za-z0-9_-]{22}/#
      for (name, letter) in [("access_token", "a"), ("refresh_token", "r")] {
        let token = try #require(tokens[name] as? String)
        #expect(token.hasPrefix(letter))
        #expect(token.dropFirst().wholeMatch(of: shape) != nil)
      }
      let parts = try #require(tokens["id_token"] as? String).split(separator: ".").map(String.init)
      let header = try jsonObject(try #require(Base64URL.decode(parts[0])))
      let signer = try #require(rehearsal.apple.ring.keys.first { $0.kid == header["kid"] as? String })
      #expect(
        try signer.privateKey.publicKey.verifiesRS256(
          try #require(Base64URL.decode(parts[2])), of: Array("\(parts[0]).\(parts[1])".utf8)))
      let claims = try jsonObject(try #require(Base64URL.decode(parts[1])))
      #expect(claims["sub"] as? String == Person(named: "Ada").subject)
      #expect(claims["aud"] as? String == Self.client)
      let refreshed = try await ask(
        rehearsal, "/auth/token",
        credentials + [
          ("grant_type", "refresh_token"), ("refresh_token", try #require(tokens["refresh_token"] as? String)),
        ])
      #expect(Set(refreshed.members.keys) == ["access_token", "expires_in", "id_token"])
    }
  }

  /// What is wrong with each client secret.
  nonisolated static let secrets: [(String, [String: JSONValue], header: String?)] = [
    ("another team", ["iss": "B1B2C3D4E5"], nil), ("another client", ["sub": "com.example.web"], nil),
    ("another audience", ["aud": "https://example.com"], nil),
    ("an array of audiences", ["aud": ["https://appleid.apple.com"]], nil),
    ("no team", ["iss": .null], nil), ("no end", ["exp": .null], nil), ("no beginning", ["iat": .null], nil),
    ("too long a life", ["exp": .integer(Timestamp.now.milliseconds / 1000 + 15_777_060)], nil),
    ("over", ["exp": .integer(Timestamp.now.milliseconds / 1000 - 1)], nil),
    ("not yet begun", ["iat": .integer(Timestamp.now.milliseconds / 1000 + 3600)], nil),
    ("another key", [:], #"{"alg":"ES256","kid":"AAAAAAAAAA"}"#), ("no key", [:], #"{"alg":"ES256"}"#),
    ("another algorithm", [:], #"{"alg":"RS256","kid":"KID"}"#), ("no algorithm", [:], #"{"alg":"none","kid":"KID"}"#),
    ("no JSON", [:], "header"),
  ]

  @Test func refusesEveryClientSecretThatIsNotRight() async throws {
    try await Rehearsal.run { rehearsal in
      let key = try rehearsal.apple.enroll(team: Self.team, clients: [Self.client])
      let stranger = try P256PrivateKey().pem()
      var texts = try Self.secrets.map { what, changes, header in
        (what, try secret(key, changes, header: header))
      }
      texts.append(("signed by somebody else", try secret(key, signedBy: stranger)))
      texts.append(("no JWT", "secret"))
      texts.append(("two parts", try secret(key).split(separator: ".").dropLast().joined(separator: ".")))
      for (what, text) in texts {
        for path in ["/auth/token", "/auth/revoke"] {
          let answer = try await ask(
            rehearsal, path,
            [
              ("client_id", Self.client), ("client_secret", text), ("grant_type", "refresh_token"),
              ("refresh_token", "r"), ("token", "r"),
            ])
          #expect(answer.status == 400, "\(what)")
          #expect(answer.members["error"] as? String == "invalid_client", "\(what)")
        }
      }
      let longest = Timestamp.now.milliseconds / 1000 + 15_776_000
      let good = try await ask(
        rehearsal, "/auth/revoke",
        [
          ("client_id", Self.client), ("client_secret", try secret(key, ["exp": .integer(longest)])), ("token", "junk"),
        ])
      #expect(good.status == 200)
      #expect(good.body.isEmpty)
      rehearsal.apple.withdrawKey(key.id)
      let withdrawn = try await ask(
        rehearsal, "/auth/revoke", [("client_id", Self.client), ("client_secret", try secret(key)), ("token", "junk")])
      #expect(withdrawn.members["error"] as? String == "invalid_client")
    }
  }

  @Test func refusesRequestsThatAreNone() async throws {
    try await Rehearsal.run { rehearsal in
      let key = try rehearsal.apple.enroll(team: Self.team, clients: [Self.client])
      let credentials = [("client_id", Self.client), ("client_secret", try secret(key))]
      for (path, fields, error) in [
        ("/auth/token", [], "invalid_request"),
        ("/auth/token", [("grant_type", "password")], "unsupported_grant_type"),
        ("/auth/token", [("grant_type", "authorization_code")], "invalid_request"),
        ("/auth/token", [("grant_type", "refresh_token")], "invalid_request"),
        ("/auth/token", [("grant_type", "refresh_token"), ("refresh_token", "r")], "invalid_grant"),
        ("/auth/token", [("client_id", Self.client)], "invalid_request"),  // twice
        ("/auth/revoke", [], "invalid_request"),
      ] {
        let answer = try await ask(rehearsal, path, credentials + fields)
        #expect(answer.status == 400)
        #expect(answer.members["error"] as? String == error)
      }
      #expect(try await rehearsal.post("{}", to: "/auth/token").status == 400)
      #expect(try await rehearsal.get("/auth/revoke").status == 405)
    }
  }

  @Test func codesEndAfterFiveMinutesAndRefreshTokensDoNotAge() throws {
    let time = Mutex(Timestamp.now)
    let apple = try SimulatedApple.forTests { time.withLock { $0 } }
    let ada = Person(named: "Ada")
    for (seconds, isGood) in [(299, true), (300, false)] as [(Int64, Bool)] {
      let code = try apple.signIn(ada, to: Self.client)
      time.withLock { $0 = $0 + .seconds(seconds) }
      #expect(try apple.redeem(code, by: Self.client) == isGood)
      #expect(try !apple.redeem(code, by: Self.client), "once")
    }
    let code = try apple.signIn(ada, to: Self.client)
    #expect(try !apple.redeem(code, by: "com.example.web"), "another client's")
    time.withLock { $0 = $0 + .seconds(10 * 365 * 86_400) }
    #expect(apple.isAuthorized(ada, for: Self.client))
    // What happens to the person, and what only seems to.
    _ = try apple.sign(.consentRevoked, of: ada, for: Self.client, faults: [.forgedSignature])
    _ = try apple.sign(.consentRevoked, of: Person(named: "Bob"), for: Self.client)
    _ = try apple.sign(.consentRevoked, of: ada, for: "com.example.web")
    #expect(apple.isAuthorized(ada, for: Self.client))
    _ = try apple.sign(.consentRevoked, of: ada, for: Self.client)
    #expect(!apple.isAuthorized(ada, for: Self.client))
    #expect(try apple.redeem(try apple.signIn(ada, to: Self.client), by: Self.client))
    _ = try apple.sign(.accountDeleted, of: ada, for: "com.example.web")
    #expect(!apple.isAuthorized(ada, for: Self.client))
  }

  @Test func aRevocationComesBackAsANotification() async throws {
    try await Rehearsal.run { rehearsal in
      try await Receiver.run(answering: [503, 200]) { receiver, plan in
        let key = try rehearsal.apple.enroll(team: Self.team, clients: [Self.client])
        rehearsal.apple.notifications = plan
        let credentials = [("client_id", Self.client), ("client_secret", try secret(key))]
        let tokens = try await signIn(rehearsal, credentials)
        let token = try #require(tokens["refresh_token"] as? String)
        for _ in 0..<2 {
          let answer = try await ask(
            rehearsal, "/auth/revoke", credentials + [("token", token), ("token_type_hint", "refresh_token")])
          #expect(answer.status == 200)
        }
        await rehearsal.apple.untilTold()
        #expect(receiver.bodies.count == 2)  // 503, then 200
        #expect(rehearsal.apple.told.map(\.received) == [1])
        let told = try #require(rehearsal.apple.told.first).notification.notification
        #expect(told.type == .consentRevoked && told.person == Person(named: "Ada") && told.audience == Self.client)
      }
    }
  }

  @Test func doesAsItIsToldOverHTTP() async throws {
    try await Rehearsal.run { rehearsal in
      let team = try jsonObject(
        try await rehearsal.post(
          #"{"team":"A1B2C3D4E5","audiences":["com.example.app"],"to":"https://localhost:1/"}"#, to: "/simulator/team"
        ).body)
      #expect(rehearsal.apple.notifications?.receiver.text == "https://localhost:1/")
      let key = DeveloperKey(
        id: try #require(team["key_id"] as? String), privateKeyPEM: try #require(team["private_key"] as? String))
      let signedIn = try jsonObject(
        try await rehearsal.post(#"{"user":"Ada","audience":"com.example.app"}"#, to: "/simulator/sign-in").body)
      #expect(signedIn["sub"] as? String == Person(named: "Ada").subject)
      let answer = try await ask(
        rehearsal, "/auth/token",
        [
          ("client_id", Self.client), ("client_secret", try secret(key)), ("grant_type", "authorization_code"),
          ("code", try #require(signedIn["code"] as? String)),
        ])
      #expect(answer.status == 200)
      let withdrawal = #"{"key_id":"\#(key.id)"}"#
      #expect(try await rehearsal.post(withdrawal, to: "/simulator/team/withdraw-key").status == 200)
      let refused = try await ask(
        rehearsal, "/auth/revoke", [("client_id", Self.client), ("client_secret", try secret(key)), ("token", "junk")])
      #expect(refused.members["error"] as? String == "invalid_client")
      let order = #"{"answer":"lost","delay_ms":5}"#
      #expect(try await rehearsal.post(order, to: "/simulator/tokens").status == 200)
      #expect(try await rehearsal.post(order, to: "/simulator/revocations").status == 200)
      #expect(rehearsal.apple.tokensAnswer == .lost && rehearsal.apple.revocationsAnswer == .lost)
      #expect(rehearsal.apple.tokensDelay == .milliseconds(5) && rehearsal.apple.revocationsDelay == .milliseconds(5))
      for (order, path) in [
        ("{}", "team"), (#"{"team":"A"}"#, "team"), ("{}", "sign-in"), (#"{"answer":"x"}"#, "tokens"),
        ("{}", "team/withdraw-key"), (#"{"key_id":"AAAAAAAAAA"}"#, "team/withdraw-key"),
      ] {
        #expect(try await rehearsal.post(order, to: "/simulator/\(path)").status == 400)
      }
    }
  }
}
