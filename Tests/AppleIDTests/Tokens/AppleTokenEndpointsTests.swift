import AccountEvents
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import TestSupport
import Testing

/// Our side of the token endpoints and the simulated Apple's, over real TLS on loopback.
@Loop @Suite struct AppleTokenEndpointsTests {
  @Test func exchangesACodeOnce() async throws {
    try await TokensRig.run { rig in
      let code = try rig.code()
      guard case .granted(let tokens) = try await rig.endpoints.exchange(code, redirectURI: nil, by: Forge.app) else {
        Issue.record("no tokens")
        return
      }
      #expect(tokens.lifetime == .seconds(3600))
      let identity = try #require(tokens.identityToken)
      let keys = try Forge.keySet(
        try AppleKeysEndpointTests.ring.get().keys.map { key in try Forge.jwk(key.kid, key.privateKey) })
      func verdict(on signIn: ExpectedSignIn) -> IdentityTokenVerdict {
        SignedIn.verifier.verify(identity, of: signIn, at: Forge.now, keys: keys)
      }
      let signIn = ExpectedSignIn(to: Forge.app, nonce: nil, code: code, accessToken: tokens.accessToken)
      let token = try #require(verdict(on: signIn).token)
      #expect(token.account.subject.text == TokensRig.ada.subject)
      let other = ExpectedSignIn(to: Forge.app, nonce: nil, accessToken: AccessToken("another"))
      #expect(verdict(on: other).refusal == .wrongAccessToken)
      #expect(try await rig.endpoints.exchange(code, redirectURI: nil, by: Forge.app) == .invalid)
      let refresh = try #require(tokens.refreshToken)
      guard case .granted(let again) = try await rig.endpoints.validate(refresh, of: Forge.app) else {
        Issue.record("not valid")
        return
      }
      #expect(again.refreshToken == nil)
      #expect(again.accessToken != tokens.accessToken)
      #expect(rig.apple.tokensAsked == 3)
      #expect(rig.apple.revocationsAsked == 0)
    }
  }

  @Test func sendsTheRedirectURIOfAWebAppAsItIs() async throws {
    try await TokensRig.run { rig in
      let uri = "https://example.com/back?a=b&c=d+e%20f é/*~"
      let code = try #require(
        AuthorizationCode(try rig.apple.signIn(TokensRig.ada, to: Forge.web.text, redirectURI: uri)))
      #expect(try await rig.endpoints.exchange(code, redirectURI: nil, by: Forge.web) == .invalid)
      #expect(try await rig.endpoints.exchange(code, redirectURI: uri, by: Forge.web) != .invalid)
    }
  }

  @Test func aRevocationShowsInTheNextValidation() async throws {
    try await TokensRig.run { rig in
      let first = try await rig.tokens(), second = try await rig.tokens(), web = try await rig.tokens(for: Forge.web)
      try await rig.endpoints.revoke(first.refresh, of: Forge.web)  // another client's: 200, and nothing happens
      #expect(try await rig.endpoints.validate(first.refresh, of: Forge.web) == .invalid)
      #expect(try await rig.endpoints.validate(first.refresh, of: Forge.app) != .invalid)
      try await rig.endpoints.revoke(first.access, of: Forge.app)
      for token in [first.refresh, second.refresh] {
        #expect(try await rig.endpoints.validate(token, of: Forge.app) == .invalid)
      }
      #expect(try await rig.endpoints.validate(web.refresh, of: Forge.web) != .invalid)
      for _ in 0..<2 { try await rig.endpoints.revoke(first.refresh, of: Forge.app) }  // already dead: 200
      try await rig.endpoints.revoke(try #require(RefreshToken("junk")), of: Forge.app)
      #expect(rig.apple.revocationsAsked == 5)
    }
  }

  /// Every answer of the simulator's, and what becomes of it; nil where it is well.
  nonisolated static let answers: [(TokensAnswer, AppleTokenError.Code?)] = TokensAnswer.allCases.map { answer in
    let code: AppleTokenError.Code? =
      switch answer {
      case .tokens: nil
      case .unavailable, .failedLate: .unavailable
      case .throttled: .throttled
      case .refused: .invalidRequest
      case .redirect: .unexpectedStatus
      case .silence: .deadline
      case .lost: .interrupted
      case .html, .tenMegabytes, .memberTwice, .wrongKind, .cutOff: .malformedAnswer
      }
    return (answer, code)
  }

  @Test(arguments: answers)
  func judgesEveryAnswerOfApples(answer: TokensAnswer, code: AppleTokenError.Code?) async throws {
    try await TokensRig.run(deadline: code == .deadline ? .milliseconds(100) : .seconds(120)) { rig in
      rig.apple.tokensAnswer = answer
      let ticket = try rig.code()
      do throws(AppleTokenError) {
        _ = try await rig.endpoints.exchange(ticket, redirectURI: nil, by: Forge.app)
        #expect(code == nil)
      } catch {
        #expect(error.code == code)
        #expect(error.retryAfter == (answer == .throttled ? .seconds(30) : nil))
        #expect(error.isTransient == (answer != .redirect && answer != .refused))
        #expect(error.isUncertain == (answer != .throttled && answer != .refused))
      }
    }
  }

  @Test func nobodyKnowsWhatBecameOfARevocationWhoseAnswerIsLost() async throws {
    try await TokensRig.run { rig in
      for (answer, code) in [(TokensAnswer.lost, AppleTokenError.Code.interrupted), (.failedLate, .unavailable)] {
        let tokens = try await rig.tokens()
        rig.apple.revocationsAnswer = answer
        await #expect { try await rig.endpoints.revoke(tokens.refresh, of: Forge.app) } throws: { error in
          (error as? AppleTokenError)?.code == code && (error as? AppleTokenError)?.isUncertain == true
        }
        #expect(!rig.apple.isAuthorized(TokensRig.ada, for: Forge.app.text))
        rig.apple.revocationsAnswer = .tokens
        try await rig.endpoints.revoke(tokens.refresh, of: Forge.app)
      }
      let tokens = try await rig.tokens()
      rig.apple.revocationsAnswer = .unavailable
      await #expect(throws: AppleTokenError.self) { try await rig.endpoints.revoke(tokens.refresh, of: Forge.app) }
      #expect(rig.apple.isAuthorized(TokensRig.ada, for: Forge.app.text))
    }
  }

  @Test func aDeadlinePassesWhileAppleActs() async throws {
    try await TokensRig.run { rig in
      let tokens = try await rig.tokens()
      rig.apple.revocationsDelay = .seconds(3600)
      let impatient = try rig.endpoints(rig.key, deadline: .milliseconds(200))
      await #expect { try await impatient.revoke(tokens.refresh, of: Forge.app) } throws: { error in
        (error as? AppleTokenError)?.code == .deadline
      }
    }
  }

  @Test func aWrongKeyIsTheOperatorsFaultAndHealsWithoutARestart() async throws {
    try await TokensRig.run { rig in
      let tokens = try await rig.tokens()
      let stranger = TeamKey(team: Forge.team, id: rig.key.id, privateKey: try P256PrivateKey())
      let otherTeam = TeamKey(team: Forge.otherTeam, id: rig.key.id, privateKey: rig.key.privateKey)
      for endpoints in [
        try rig.endpoints(stranger), try rig.endpoints(otherTeam),
        try rig.endpoints(rig.key, now: Forge.now + .seconds(1)),
        try rig.endpoints(rig.key, now: Forge.now - .seconds(3600)),
      ] {
        await #expect { try await endpoints.revoke(tokens.refresh, of: Forge.app) } throws: { error in
          guard let error = error as? AppleTokenError else { return false }
          return error.code == .invalidClient && error.remedy == .operator && !error.isTransient && !error.isUncertain
            && error.detail.contains("com.example.app, signed by key \(rig.key.id) of team")
        }
      }
      #expect(try await rig.endpoints.validate(tokens.refresh, of: Forge.app) != .invalid)
      rig.apple.withdrawKey(rig.key.id.text)
      await #expect { try await rig.endpoints.validate(tokens.refresh, of: Forge.app) } throws: { error in
        (error as? AppleTokenError)?.code == .invalidClient
      }
      await #expect { try await rig.endpoints.validate(tokens.refresh, of: Forge.otherApp) } throws: { error in
        (error as? AppleTokenError)?.code == .noKey
      }
    }
  }

  @Test func saysThatNobodyWasReached() async throws {
    try await TokensRig.run { rig in
      let endpoints = try TokensRig.endpoints(
        token: "http://127.0.0.1:1/", revocation: "http://127.0.0.1:1/", key: rig.key, trustAnchors: "/nowhere",
        deadline: .seconds(300))
      await #expect { try await endpoints.validate(try #require(RefreshToken("r")), of: Forge.app) } throws: { error in
        guard let error = error as? AppleTokenError else { return false }
        return error.code == .unreachable && error.isTransient && !error.isUncertain
      }
      let strangers = try TokensRig.endpoints(
        token: rig.server.tokenURL, revocation: rig.server.revocationURL, key: rig.key, trustAnchors: "/dev/null",
        deadline: .seconds(300))
      await #expect { try await strangers.validate(try #require(RefreshToken("r")), of: Forge.app) } throws: { error in
        (error as? AppleTokenError)?.remedy == .operator
      }
      #expect(rig.apple.tokensAsked == 0)
    }
  }

  /// A server that answers once, and at the second request on the connection ends without a word.
  @Test func aCodeIsSentOnceWhereTheConnectionDies() async throws {
    var count = 0
    let body = #"{"access_token":"a","expires_in":3600}"#
    let server = try ScriptedServer { peer in
      while await peer.request() != nil {
        count += 1
        if count == 2 || count == 4 { return }
        await peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
      }
    }
    defer { server.close() }
    let key = TeamKey(team: Forge.team, id: try #require(KeyID("ABC123DEFG")), privateKey: try P256PrivateKey())
    let url = "http://127.0.0.1:\(server.port)/"
    let endpoints = try TokensRig.endpoints(
      token: url, revocation: url, key: key, trustAnchors: "/dev/null", deadline: .seconds(300))
    let token = try #require(RefreshToken("r"))
    _ = try await endpoints.validate(token, of: Forge.app)
    await #expect {
      try await endpoints.exchange(try #require(AuthorizationCode("c")), redirectURI: nil, by: Forge.app)
    } throws: { error in
      (error as? AppleTokenError)?.code == .interrupted && (error as? AppleTokenError)?.isUncertain == true
    }
    #expect(server.requests.count(where: { $0.contains("grant_type=authorization_code&code=c") }) == 1)
    // A question may be asked twice.
    for _ in 0..<2 { _ = try await endpoints.validate(token, of: Forge.app) }
    #expect(server.requests.count(where: { $0.contains("grant_type=refresh_token") }) == 4)
  }

  // MARK: Two keys

  @Test func theOtherKeySignsWhereAppleRefusesOne() async throws {
    try await TokensRig.run { rig in
      let (first, second) = (rig.key, try rig.anotherKey())
      var takeovers: [KeyTakeover] = []
      let endpoints = try rig.endpoints(first, second: second) { takeovers.append($0) }
      func takeover(from refused: TeamKey, to signing: TeamKey, _ client: ClientID = Forge.app) -> KeyTakeover {
        KeyTakeover(
          client: client, team: Forge.team, refused: refused.id, signing: signing.id, isSecond: signing.id == second.id)
      }
      let tokens = try await rig.tokens()
      #expect(try await endpoints.validate(tokens.refresh, of: Forge.app) != .invalid)
      #expect(takeovers.isEmpty)

      rig.apple.withdrawKey(first.id.text)
      let asked = rig.apple.tokensAsked
      // The secret that Apple accepted until now is refused. A code is not used up by that.
      let code = try rig.code()
      #expect(try await endpoints.exchange(code, redirectURI: nil, by: Forge.app) != .invalid)
      #expect(takeovers == [takeover(from: first, to: second)])
      #expect(rig.apple.tokensAsked == asked + 2)
      #expect(try await endpoints.exchange(code, redirectURI: nil, by: Forge.app) == .invalid)
      #expect(rig.apple.tokensAsked == asked + 3, "Apple is asked with the second key at once")
      // An app of its own, whose first answer is a no of another kind.
      #expect(try await endpoints.validate(tokens.refresh, of: Forge.web) == .invalid)
      #expect(takeovers == [takeover(from: first, to: second), takeover(from: first, to: second, Forge.web)])

      try await endpoints.revoke(tokens.refresh, of: Forge.app)
      #expect(try await endpoints.validate(tokens.refresh, of: Forge.app) == .invalid)
      #expect(takeovers.count == 2)
    }
  }

  @Test func whatNeitherKeyCanDoIsTheOperatorsFault() async throws {
    try await TokensRig.run { rig in
      let tokens = try await rig.tokens()
      let stranger = TeamKey(team: Forge.team, id: try #require(KeyID("ABC123DEFG")), privateKey: try P256PrivateKey())
      var takeovers: [Bool] = []
      let endpoints = try rig.endpoints(stranger, second: rig.key) { takeovers.append($0.isSecond) }
      #expect(try await endpoints.validate(tokens.refresh, of: Forge.app) != .invalid)
      #expect(takeovers == [true])
      rig.apple.withdrawKey(rig.key.id.text)
      for _ in 0..<2 {
        await #expect { try await endpoints.validate(tokens.refresh, of: Forge.app) } throws: { error in
          guard let error = error as? AppleTokenError else { return false }
          return error.code == .invalidClient && error.remedy == .operator
            && error.detail.contains("signed by key ABC123DEFG and key \(rig.key.id) of team")
        }
      }
      #expect(takeovers == [true], "what neither can do is no turn of either")
    }
  }

  @Test func manyRequestsAtOnceTurnTheKeyOverOnce() async throws {
    try await TokensRig.run { rig in
      let tokens = try await rig.tokens()
      var takeovers = 0
      let endpoints = try rig.endpoints(rig.key, second: try rig.anotherKey()) { _ in takeovers += 1 }
      _ = try await endpoints.validate(tokens.refresh, of: Forge.app)
      rig.apple.withdrawKey(rig.key.id.text)
      let answers = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<12 {
          group.addTask(executorPreference: Loop.executor) {
            do { return try await endpoints.validate(tokens.refresh, of: Forge.app) != .invalid } catch { return false }
          }
        }
        var answers: [Bool] = []
        for await answer in group { answers.append(answer) }
        return answers
      }
      #expect(answers == Array(repeating: true, count: 12))
      #expect(takeovers == 1)
    }
  }
}
