import AccountEvents
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import HTTPClient
import JSON
import TestSupport
import Testing

/// Our side of the migration endpoint and the simulated Apple's, over real TLS on loopback, for both teams.
@Loop @Suite struct AppleMigrationEndpointTests {
  static let users = (0..<40).map { Person(named: "user \($0)") }

  /// A rig in which everybody is a user of the app, which has gone to the other team, and that team's key.
  private static func run(
    _ body: @Loop (_ rig: TokensRig, _ recipient: TeamKey) async throws -> Void
  ) async throws {
    try await TokensRig.run { rig in
      rig.apple.populate(Forge.app.text)
      let recipient = try TokensRig.key(of: Forge.otherTeam, [], at: rig.apple)
      rig.apple.transfer(Forge.app.text, from: Forge.team.text, to: Forge.otherTeam.text, acceptedAt: rig.calendar.now)
      try await body(rig, recipient)
    }
  }

  private func generate(
    for person: Person, _ endpoint: AppleMigrationEndpoint, to target: TeamID = Forge.otherTeam
  ) async throws -> TransferSubject? {
    try await endpoint.identifier(of: try #require(AppleSubject(person.subject)), to: target, by: Forge.app)
  }

  /// What is thrown, all of it; nothing of a person may be in it.
  private func failure(_ body: () async throws -> Void) async throws -> AppleTokenError? {
    do {
      try await body()
      return nil
    } catch let error as AppleTokenError {
      var said = "\(error) \(String(reflecting: error))"
      dump(error, to: &said)
      for text in [TokensRig.ada.subject, TokensRig.ada.address, "001876.r", "@", "eyJ", "Bearer"] {
        #expect(!said.contains(text), "\(said)")
      }
      return error
    }
  }

  @Test func aUserIsTheSameOneInTheBatchAndAtTheSignIn() async throws {
    try await Self.run { rig, recipient in
      let sending = try rig.migration(rig.key), receiving = try rig.migration(recipient)
      let identifier = try #require(try await generate(for: TokensRig.ada, sending))
      #expect(try await generate(for: TokensRig.ada, sending) == identifier)
      let user = try #require(try await receiving.account(of: identifier, by: Forge.app))
      let known = rig.apple.known(TokensRig.ada, to: Forge.app.text)
      #expect(user.subject.text == known.subject && user.address?.text == known.address && user.isPrivate)

      let code = try rig.code()
      guard
        case .granted(let tokens) = try await rig.endpoints(recipient).exchange(code, redirectURI: nil, by: Forge.app)
      else {
        Issue.record("no tokens")
        return
      }
      let keys = try Forge.keySet(
        try AppleKeysEndpointTests.ring.get().keys.map { key in try Forge.jwk(key.kid, key.privateKey) })
      let signIn = ExpectedSignIn(to: Forge.app, nonce: nil, code: code, accessToken: tokens.accessToken)
      let identityToken = try #require(tokens.identityToken)
      let verdict = SignedIn.verifier.verify(identityToken, of: signIn, at: Forge.now, keys: keys)
      let token = try #require(verdict.token)
      #expect(token.transferSubject == identifier)
      #expect(token.account.subject == user.subject && token.email?.address == user.address)
      #expect(rig.apple.tokensAsked == 3, "one token for each team, and the code")
    }
  }

  @Test func whomAppleRefusesIsNil() async throws {
    try await Self.run { rig, recipient in
      let sending = try rig.migration(rig.key), receiving = try rig.migration(recipient)
      let identifier = try #require(try await generate(for: TokensRig.ada, sending))
      rig.apple.withdrawConsent(of: TokensRig.ada, to: Forge.app.text)
      #expect(try await generate(for: TokensRig.ada, sending) == nil)
      #expect(try await receiving.account(of: identifier, by: Forge.app) == nil)
      let junk = try #require(TransferSubject("junk"))
      #expect(try await receiving.account(of: junk, by: Forge.app) == nil)
      // The others go on, until the 60 days are over.
      #expect(try await generate(for: Self.users[0], sending) != nil)
      rig.calendar.pass(.seconds(60 * 86_400))
      #expect(try await generate(for: Self.users[0], sending) == nil)
      #expect(try await receiving.account(of: identifier, by: Forge.app) == nil)
    }
  }

  @Test func oneInSoManyQuestionsIsThrottled() async throws {
    try await Self.run { rig, _ in
      let endpoint = try rig.migration(rig.key)
      try await endpoint.authorize(as: Forge.app)
      #expect(rig.apple.tokensAsked == 1 && rig.apple.migrationsAsked == 0, "nobody was asked about")
      (rig.apple.migrationThrottle, rig.apple.retryAfter) = (3, .seconds(7))
      for number in 1...6 {
        let error = try await failure { _ = try await generate(for: TokensRig.ada, endpoint) }
        let isThrottled = error?.code == .throttled && error?.retryAfter == .seconds(7)
        #expect(isThrottled == (number % 3 == 0) && (error == nil) == (number % 3 != 0), "\(number)")
      }
      #expect(rig.apple.tokensAsked == 1)
    }
  }

  // MARK: The tokens' ends

  @Test func theTokenIsRenewedBeforeItsHourIsOver() async throws {
    try await Self.run { rig, _ in
      let endpoint = try rig.migration(rig.key)
      // In the end the clock was set back: nobody knows how old the token is.
      for (seconds, tokens) in [(0, 1), (2879, 1), (1, 2), (2879, 2), (-3000, 3)] as [(Int64, Int)] {
        rig.calendar.pass(.seconds(seconds))
        #expect(try await generate(for: TokensRig.ada, endpoint) != nil)
        #expect(rig.apple.tokensAsked == tokens)
      }
      #expect(rig.apple.migrationsAsked == 5, "no request was in vain")
    }
  }

  /// What ends in the middle of a batch, and how many tokens are fetched in all.
  nonisolated static let ends: [(String, @Sendable @Loop (TokensRig) -> Void, tokens: Int)] = [
    ("nothing", { _ in }, 1),
    ("the token's hour", { $0.calendar.pass(.seconds(3600)) }, 2),
    ("the client secret", { $0.calendar.pass(.seconds(7200)) }, 2),
    ("the token, before its hour", { $0.apple.endTeamTokens() }, 2),
    ("the key, with another one beside it", { $0.apple.withdrawKey($0.key.id.text) }, 1),
  ]

  @Test(arguments: ends.indices) func nobodyIsLostWhereSomethingEndsInTheMiddleOfABatch(index: Int) async throws {
    let (what, end, tokens) = Self.ends[index]
    try await Self.run { rig, _ in
      let endpoint = try rig.migration(rig.key, second: try rig.anotherKey(), lifetime: .seconds(7200))
      let identifiers = try await withThrowingTaskGroup(of: TransferSubject?.self) { group in
        var found: [TransferSubject?] = []
        for (number, person) in Self.users.enumerated() {
          if number >= 8 { found.append(try await group.next() ?? nil) }
          if number == 20 { end(rig) }
          group.addTask(executorPreference: Loop.executor) { try await self.generate(for: person, endpoint) }
        }
        for try await identifier in group { found.append(identifier) }
        return found
      }
      #expect(Set(identifiers.compactMap(\.self)).count == Self.users.count, "\(what)")
      #expect(rig.apple.tokensAsked == tokens, "\(what)")
    }
  }

  // MARK: Faults

  @Test func wrongKeyWrongAppAndWrongTeamAreNamed() async throws {
    try await Self.run { rig, recipient in
      let id = rig.key.id
      for (key, words) in [
        (TeamKey(team: Forge.team, id: id, privateKey: try P256PrivateKey()), "key \(id) of team \(Forge.team)"),
        (TeamKey(team: Forge.otherTeam, id: id, privateKey: rig.key.privateKey), "of team \(Forge.otherTeam)"),
        (TeamKey(team: Forge.team, id: recipient.id, privateKey: rig.key.privateKey), "key \(recipient.id) of team"),
      ] {
        let endpoint = try rig.migration(key)
        let error = try #require(try await failure { _ = try await generate(for: TokensRig.ada, endpoint) })
        #expect(error.code == .invalidClient && error.remedy == .operator && !error.isUncertain)
        #expect(error.detail.contains("com.example.app, signed by") && error.detail.contains(words), "\(error)")
      }
      let endpoint = try rig.migration(rig.key)
      let stranger = try #require(TransferSubject("t"))
      let error = try #require(
        try await failure { _ = try await endpoint.account(of: stranger, by: Forge.web) })
      #expect(error.code == .noKey && error.detail.contains("com.example.web"))
      #expect(rig.apple.migrationsAsked == 0)
      // What is right goes on.
      #expect(try await generate(for: TokensRig.ada, endpoint) != nil)
    }
  }

  @Test func theReceivingTeamIsTurnedAwayBeforeTheAcceptance() async throws {
    try await Self.run { rig, recipient in
      rig.apple.transfer(Forge.app.text, from: Forge.team.text, to: Forge.otherTeam.text, acceptedAt: nil)
      let sending = try rig.migration(rig.key), receiving = try rig.migration(recipient)
      let identifier = try #require(try await generate(for: TokensRig.ada, sending))
      let error = try await failure { _ = try await receiving.account(of: identifier, by: Forge.app) }
      #expect(error?.code == .invalidClient)
    }
  }

  @Test(arguments: AppleTokenEndpointsTests.answers)
  func judgesEveryAnswerOfApples(answer: TokensAnswer, code: AppleTokenError.Code?) async throws {
    let deadline = code == .deadline ? Duration.milliseconds(300) : .seconds(120)
    try await Self.run { rig, recipient in
      let endpoint = try rig.migration(rig.key, deadline: deadline)
      rig.apple.migrationAnswer = answer
      var found: TransferSubject?
      let error = try await failure { found = try await generate(for: TokensRig.ada, endpoint) }
      // What Apple keeps to itself why it refuses is about the user.
      #expect(error?.code == (answer == .refused ? nil : code))
      #expect((found != nil) == (code == nil))
      #expect(error?.retryAfter == (answer == .throttled ? .seconds(30) : nil))
      rig.apple.migrationAnswer = .tokens
      let patient = try rig.migration(rig.key)
      let identifier = try #require(try await generate(for: TokensRig.ada, patient))
      rig.apple.migrationAnswer = answer
      let receiving = try rig.migration(recipient, deadline: deadline)
      var user: TransferredUser?
      let other = try await failure { user = try await receiving.account(of: identifier, by: Forge.app) }
      #expect(other?.code == (answer == .refused ? nil : code))
      #expect((user != nil) == (code == nil))
    }
  }

  @Test func whatTheTokenEndpointRefusesIsNobodysRefusal() async throws {
    try await Self.run { rig, _ in
      let endpoint = try rig.migration(rig.key)
      for (answer, code) in AppleTokenEndpointsTests.answers where answer != .silence && code != nil {
        rig.apple.tokensAnswer = answer
        let error = try await failure { _ = try await generate(for: TokensRig.ada, endpoint) }
        #expect(error?.code == code)
      }
      #expect(rig.apple.migrationsAsked == 0)
      rig.apple.tokensAnswer = .tokens
      #expect(try await generate(for: TokensRig.ada, endpoint) != nil)
    }
  }
}
