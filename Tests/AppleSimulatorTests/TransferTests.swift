import AccountEvents
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import Synchronization
import Testing

/// An app that changes teams, and the migration endpoint, asked by both teams without any of our own code for that.
@Loop @Suite struct TransferTests {
  nonisolated static let (client, other) = ("com.example.app", "com.example.other")
  nonisolated static let (sender, recipient) = ("A1B2C3D4E5", "Z9Y8X7W6V5")
  nonisolated static let ada = Person(named: "Ada")

  /// Both teams with their keys, and a clock that is turned.
  @Loop
  final class Stage {
    let rehearsal: Rehearsal
    let keys: [String: DeveloperKey]
    private let time: @Sendable (Duration) -> Timestamp

    var apple: SimulatedApple { rehearsal.apple }
    var now: Timestamp { time(.zero) }

    init(_ rehearsal: Rehearsal, time: @escaping @Sendable (Duration) -> Timestamp) throws {
      (self.rehearsal, self.time) = (rehearsal, time)
      keys = [
        sender: try rehearsal.apple.enroll(team: sender, clients: [client, other]),
        recipient: try rehearsal.apple.enroll(team: recipient, clients: ["org.example.recipient"]),
      ]
    }

    static func run(_ body: @Loop (Stage) async throws -> Void) async throws {
      let time = Turned()
      let clock: @Sendable () -> Timestamp = { time.turn(by: .zero) }
      try await Rehearsal.run(clock: clock) { rehearsal in
        try await body(try Stage(rehearsal, time: time.turn))
      }
    }

    /// What a clock says that nobody but the test moves.
    private final class Turned: Sendable {
      private let time = Mutex(Timestamp.now)
      func turn(by duration: Duration) -> Timestamp {
        time.withLock { time in
          time = time + duration
          return time
        }
      }
    }

    /// Lets time pass.
    func pass(_ duration: Duration) { _ = time(duration) }

    func credentials(_ team: String, _ client: String = TransferTests.client) throws -> [(String, String)] {
      let key = try #require(keys[team])
      return [("client_id", client), ("client_secret", try key.secret(of: team, for: client, at: now))]
    }

    func ask(
      _ path: String, _ form: [(String, String)], headers: [(String, String)] = []
    ) async throws -> [String: AnyHashable] {
      let answer = try await rehearsal.post(form: form, to: path, headers: headers)
      let members = try #require(try jsonObject(answer.body) as? [String: AnyHashable])
      #expect(answer.status == (members["error"] == nil ? 200 : 400))
      return members
    }

    /// The answer to a request for a team's access token.
    func grant(_ team: String, scope: String = "user.migration") async throws -> [String: AnyHashable] {
      try await ask(
        "/auth/token", [("grant_type", "client_credentials"), ("scope", scope)] + (try credentials(team)))
    }

    /// The answer to a form, with an access token of the team's.
    func migrate(
      _ team: String, _ form: [(String, String)], token: String? = nil
    ) async throws -> [String: AnyHashable] {
      var token = token
      if token == nil { token = try await grant(team)["access_token"] as? String }
      return try await ask(
        "/auth/usermigrationinfo", form + (try credentials(team)),
        headers: [("Authorization", "Bearer \(try #require(token))")])
    }

    func generate(_ person: Person, from team: String = sender, for target: String = recipient) async throws
      -> [String: AnyHashable]
    { try await migrate(team, [("sub", person.subject), ("target", target)]) }

    /// The claims of the identity token of a new sign-in, in the name of a team.
    func signIn(_ person: Person, _ team: String) async throws -> [String: AnyHashable] {
      let code = try apple.signIn(person, to: client)
      let answer = try await ask(
        "/auth/token", [("grant_type", "authorization_code"), ("code", code)] + (try credentials(team)))
      let parts = try #require(answer["id_token"] as? String).split(separator: ".").map(String.init)
      let claims = try #require(Base64URL.decode(parts[1]))
      return try #require(try jsonObject(claims) as? [String: AnyHashable])
    }
  }

  static let refused: [String: AnyHashable] = ["error": "invalid_request"]

  @Test func movesAUserThereAndBack() async throws {
    try await Stage.run { stage in
      _ = try stage.apple.signIn(Self.ada, to: Self.client)
      stage.apple.transfer(Self.client, from: Self.sender, to: Self.recipient, acceptedAt: nil)
      let generated = try await stage.generate(Self.ada)
      let identifier = try #require(generated["transfer_sub"] as? String)
      #expect(generated.count == 1)
      #expect(identifier.wholeMatch(of: #/001876\.r[0-9a-f]{32}/#) != nil)
      #expect(try await stage.generate(Self.ada) == generated, "always the same")
      #expect(try await stage.generate(Self.ada, for: "AAAAAAAAAA") != generated)
      // Before the acceptance it is not the recipient's.
      #expect(try await stage.grant(Self.recipient) == ["error": "invalid_client"])

      stage.apple.transfer(Self.client, from: Self.sender, to: Self.recipient, acceptedAt: stage.now)
      #expect(try await stage.generate(Self.ada) == generated)
      let user = try await stage.migrate(Self.recipient, [("transfer_sub", identifier)])
      let known = stage.apple.known(Self.ada, to: Self.client)
      #expect(Set(user.keys) == ["sub", "email", "is_private_email"] && user["is_private_email"] as? Bool == true)
      #expect(user["sub"] as? String == known.subject && user["email"] as? String == known.address)
      #expect(known.subject != Self.ada.subject && known.address != Self.ada.address)
      #expect(known.subject.wholeMatch(of: #/\d{6}\.[0-9a-f]{32}\.\d{4}/#) != nil)
      #expect(known.address.wholeMatch(of: #/[a-z0-9]{10}@privaterelay\.appleid\.com/#) != nil)
      for form in [[("transfer_sub", "001876.r" + String(repeating: "0", count: 32))], [("transfer_sub", "x")]] {
        #expect(try await stage.migrate(Self.recipient, form) == Self.refused)
      }
    }
  }

  @Test func whoSharesTheirOwnAddressHasNoneThatMoves() async throws {
    try await Stage.run { stage in
      var bob = Person(named: "Bob")
      (bob.address, bob.hidesAddress) = ("bob@example.com", false)
      _ = try stage.apple.signIn(bob, to: Self.client)
      stage.apple.transfer(Self.client, from: Self.sender, to: Self.recipient, acceptedAt: stage.now)
      let identifier = try #require(try await stage.generate(bob)["transfer_sub"] as? String)
      let user = try await stage.migrate(Self.recipient, [("transfer_sub", identifier)])
      #expect(user == ["sub": stage.apple.known(bob, to: Self.client).subject])
      #expect(try await stage.signIn(bob, Self.recipient)["email"] as? String == "bob@example.com")
    }
  }

  @Test func bothTeamsCanAskForSixtyDays() async throws {
    try await Stage.run { stage in
      stage.apple.populate(Self.client)
      stage.apple.transfer(Self.client, from: Self.sender, to: Self.recipient, acceptedAt: stage.now + .seconds(60))
      let identifier = try #require(try await stage.generate(Self.ada)["transfer_sub"] as? String)
      #expect(try await stage.grant(Self.recipient) == ["error": "invalid_client"])
      for (days, isOpen) in [(0, true), (59, true), (60, false)] as [(Int64, Bool)] {
        stage.apple.transfer(
          Self.client, from: Self.sender, to: Self.recipient, acceptedAt: stage.now - .seconds(days * 86_400))
        let generated = try await stage.generate(Self.ada)
        let exchanged = try await stage.migrate(Self.recipient, [("transfer_sub", identifier)])
        #expect((generated == ["transfer_sub": identifier]) == isOpen, "\(days)")
        #expect((generated == Self.refused) == !isOpen, "\(days)")
        #expect((exchanged["sub"] != nil) == isOpen, "\(days)")
        #expect((exchanged == Self.refused) == !isOpen, "\(days)")
        // For another team, and in the other direction.
        #expect(try await stage.generate(Self.ada, for: "AAAAAAAAAA") == Self.refused)
        #expect(try await stage.migrate(Self.sender, [("transfer_sub", identifier)]) == Self.refused)
      }
    }
  }

  @Test func whoHasWithdrawnConsentIsRefused() async throws {
    try await Stage.run { stage in
      stage.apple.transfer(Self.client, from: Self.sender, to: Self.recipient, acceptedAt: stage.now)
      #expect(try await stage.generate(Self.ada) == Self.refused, "never a user")
      for isPopulated in [false, true] {
        if isPopulated {
          stage.apple.populate(Self.client)
        } else {
          _ = try stage.apple.signIn(Self.ada, to: Self.client)
        }
        let identifier = try #require(try await stage.generate(Self.ada)["transfer_sub"] as? String)
        if isPopulated {
          _ = try stage.apple.sign(.consentRevoked, of: Self.ada, for: Self.client)
        } else {
          stage.apple.withdrawConsent(of: Self.ada, to: Self.client)
        }
        #expect(try await stage.generate(Self.ada) == Self.refused)
        #expect(try await stage.migrate(Self.recipient, [("transfer_sub", identifier)]) == Self.refused)
        _ = try stage.apple.signIn(Self.ada, to: Self.client)
        #expect(try await stage.generate(Self.ada) == ["transfer_sub": identifier])
        stage.apple.withdrawConsent(of: Self.ada, to: Self.client)
      }
    }
  }

  @Test func aTeamThatIsItsOwnTargetGetsWhatNobodyCanExchange() async throws {
    try await Stage.run { stage in
      stage.apple.populate(Self.client)
      let useless = try #require(try await stage.generate(Self.ada, for: Self.sender)["transfer_sub"] as? String)
      #expect(useless.wholeMatch(of: #/001876\.r[0-9a-f]{32}/#) != nil)
      stage.apple.transfer(Self.client, from: Self.sender, to: Self.recipient, acceptedAt: stage.now)
      for team in [Self.sender, Self.recipient] {
        #expect(try await stage.migrate(team, [("transfer_sub", useless)]) == Self.refused)
      }
    }
  }

  @Test func aTeamsTokenIsForTheTeamAndTheAppForAnHour() async throws {
    try await Stage.run { stage in
      stage.apple.populate(Self.client)
      stage.apple.transfer(Self.client, from: Self.sender, to: Self.recipient, acceptedAt: stage.now)
      let question = [("sub", Self.ada.subject), ("target", Self.recipient)]
      #expect(try await stage.grant(Self.sender, scope: "name") == ["error": "invalid_scope"])
      let grant = try await stage.grant(Self.sender)
      let token = try #require(grant["access_token"] as? String)
      #expect(Set(grant.keys) == ["access_token", "token_type", "expires_in"])
      #expect(grant["token_type"] as? String == "Bearer" && grant["expires_in"] as? Int == 3600)
      #expect(token.wholeMatch(of: #/a[0-9a-f]{32}\.0\.[a-z]+\.[A-Za-z0-9_-]{22}/#) != nil)
      let over: [String: AnyHashable] = ["error": "invalid_grant"]
      #expect(try await stage.migrate(Self.recipient, question, token: token) == over)
      #expect(try await stage.migrate(Self.sender, question, token: "a") == over)
      #expect(try await stage.ask("/auth/usermigrationinfo", question + stage.credentials(Self.sender)) == over)
      let stranger = question + (try stage.credentials(Self.sender, Self.other))
      let bearer = [("Authorization", "Bearer \(token)")]
      #expect(try await stage.ask("/auth/usermigrationinfo", stranger, headers: bearer) == over, "of another app")
      let unproven = question + [("client_id", Self.client), ("client_secret", "x")]
      #expect(
        try await stage.ask("/auth/usermigrationinfo", unproven, headers: bearer) == ["error": "invalid_client"])
      for form in [[], question.dropLast(), question + [("transfer_sub", "x")], [question[0], ("target", "team")]] {
        #expect(try await stage.migrate(Self.sender, Array(form), token: token) == Self.refused)
      }
      for (minutes, isGood) in [(59, true), (1, false)] as [(Int64, Bool)] {
        stage.pass(.seconds(minutes * 60))
        #expect((try await stage.migrate(Self.sender, question, token: token)["transfer_sub"] != nil) == isGood)
      }
      let another = try #require(try await stage.grant(Self.sender)["access_token"] as? String)
      stage.apple.endTeamTokens()
      #expect(try await stage.migrate(Self.sender, question, token: another) == over)
    }
  }

  @Test func signInsToATransferredAppNameTheTransferForSixtyDays() async throws {
    try await Stage.run { stage in
      let before = try await stage.signIn(Self.ada, Self.sender)
      #expect(before["sub"] as? String == Self.ada.subject && before["transfer_sub"] == nil)
      stage.pass(.seconds(1))
      let code = try stage.apple.signIn(Self.ada, to: Self.client)
      stage.apple.transfer(Self.client, from: Self.sender, to: Self.recipient, acceptedAt: stage.now)
      let known = stage.apple.known(Self.ada, to: Self.client)
      let claims = try await stage.signIn(Self.ada, Self.recipient)
      #expect(claims["sub"] as? String == known.subject && claims["email"] as? String == known.address)
      let generated = try await stage.generate(Self.ada)
      #expect(claims["transfer_sub"] != nil && claims["transfer_sub"] == generated["transfer_sub"])
      let newcomer = try await stage.signIn(Person(named: "Eve"), Self.recipient)
      #expect(newcomer["transfer_sub"] == nil, "who was no user before")
      // What was given out before is for whoever has the app now.
      let redemption = [("grant_type", "authorization_code"), ("code", code)]
      #expect(
        try await stage.ask("/auth/token", redemption + stage.credentials(Self.sender)) == ["error": "invalid_client"])
      #expect(
        try await stage.ask("/auth/token", redemption + stage.credentials(Self.recipient))["refresh_token"] != nil)
      let notification = try stage.apple.sign(.emailDisabled, of: Self.ada, for: Self.client).notification
      #expect(notification.person.subject == known.subject && notification.person.address == known.address)
      #expect(
        try stage.apple.sign(.emailDisabled, of: Self.ada, for: Self.other).notification.person == Self.ada,
        "at the team that has sent the app")
      stage.pass(.seconds(60 * 86_400))
      let late = try await stage.signIn(Self.ada, Self.recipient)
      #expect(late["sub"] as? String == known.subject && late["transfer_sub"] == nil)
    }
  }

  @Test func anAppCanGoOnToAThirdTeam() async throws {
    try await Stage.run { stage in
      stage.apple.populate(Self.client)
      stage.apple.transfer(Self.client, from: Self.sender, to: Self.recipient, acceptedAt: stage.now)
      let known = stage.apple.known(Self.ada, to: Self.client)
      let third = "BBBBBBBBBB"
      let identifier = try #require(
        try await stage.generate(known, from: Self.recipient, for: third)["transfer_sub"] as? String)
      #expect(
        try await stage.generate(Self.ada, from: Self.recipient, for: third)["transfer_sub"] as? String != identifier)
      let key = try stage.apple.enroll(team: third, clients: [])
      stage.apple.transfer(Self.client, from: Self.recipient, to: third, acceptedAt: stage.now)
      let credentials = [
        ("client_id", Self.client), ("client_secret", try key.secret(of: third, for: Self.client, at: stage.now)),
      ]
      let grant = try await stage.ask(
        "/auth/token", [("grant_type", "client_credentials"), ("scope", "user.migration")] + credentials)
      let user = try await stage.ask(
        "/auth/usermigrationinfo", [("transfer_sub", identifier)] + credentials,
        headers: [("Authorization", "Bearer \(try #require(grant["access_token"] as? String))")])
      #expect(user["sub"] as? String == stage.apple.known(Self.ada, to: Self.client).subject)
      #expect(user["sub"] as? String != known.subject)
    }
  }

  @Test func doesAsItIsToldOverHTTP() async throws {
    try await Stage.run { stage in
      func order(_ json: String, _ path: String) async throws -> Int {
        try await stage.rehearsal.post(json, to: "/simulator/\(path)").status
      }
      let app = #""audience":"\#(Self.client)""#
      let teams = #""team":"\#(Self.sender)","target":"\#(Self.recipient)""#
      #expect(try await order("{\(app)}", "populate") == 200)
      #expect(try await order("{\(app),\(teams)}", "transfer") == 200)
      #expect(try await stage.grant(Self.recipient) == ["error": "invalid_client"])
      #expect(try await order("{\(app),\(teams),\"accepted_days_ago\":59}", "transfer") == 200)
      let identifier = try #require(try await stage.generate(Self.ada)["transfer_sub"] as? String)
      #expect(try await stage.migrate(Self.recipient, [("transfer_sub", identifier)])["sub"] != nil)
      #expect(try await order("{\(app),\"user\":\"Ada\"}", "withdraw-consent") == 200)
      #expect(try await stage.generate(Self.ada) == Self.refused)
      #expect(try await order("{\(app),\(teams),\"accepted_days_ago\":60}", "transfer") == 200)
      #expect(try await stage.generate(Person(named: "Bob")) == Self.refused)
      let token = try #require(try await stage.grant(Self.sender)["access_token"] as? String)
      #expect(try await order("{}", "team/end-tokens") == 200)
      #expect(try await stage.migrate(Self.sender, [], token: token) == ["error": "invalid_grant"])
      #expect(try await order(#"{"answer":"lost","delay_ms":5}"#, "migrations") == 200)
      #expect(stage.apple.migrationAnswer == .lost && stage.apple.migrationDelay == .milliseconds(5))
      for (json, path) in [
        ("{}", "populate"), ("{\(app)}", "transfer"), ("{\(app)}", "withdraw-consent"),
        ("{\(app),\(teams),\"accepted_days_ago\":-1}", "transfer"), (#"{"answer":"x"}"#, "migrations"),
      ] {
        #expect(try await order(json, path) == 400)
      }
    }
  }
}
