import AccountEvents
import AccountStore
import AppleID
import AppleSimulator
import ConsumerSupport
import Cryptography
import EventLoop
import HTTPClient
import JSON
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import AccountServices

/// What becomes of tokens where the store fails once Apple has granted them, and of exchanges that were broken off.
@Loop @Suite(.timeLimit(.minutes(30))) struct SignInsTests {
  private let ada = Person(named: "Ada")

  @Test func aTokenThatTheStoreDidNotTakeIsTakenWhenTheProgramEnds() async throws {
    try await Rig.run { rig in
      rig.store.before = Rig.failing(.recordSignIn)
      let request = try await rig.request(ada)
      rig.expect(.unavailable, try await rig.signIn(request))
      // The code is used up: whoever repeats the request waits for the store, too.
      rig.expect(.unavailable, try await rig.signIn(request))
      #expect(rig.registry.text.contains("siwa_accounts_tokens_waiting 1"))
      rig.store.before = { _ in }
      await rig.signIns.drain()
      #expect(try await rig.tokens(of: ada) == 1 && rig.apple.revocationsAsked == rig.own)
      #expect(try await rig.another().signIn(request).get().isNew)
    }
  }

  /// Or all processes would come back to the store at once.
  @Test func aTokenIsOfferedAgainAfterPausesThatDiffer() async throws {
    try await Rig.run { rig in
      rig.pauses.end()
      var failures = 0
      rig.store.before = { call throws(AccountStoreError) in
        guard call == .recordSignIn, failures < 20 else { return }
        failures += 1
        throw AccountStoreError(.unavailable, "as the test wants")
      }
      rig.expect(.unavailable, try await rig.signIn(try await rig.request(ada)))
      try await until { rig.registry.text.contains("siwa_accounts_tokens_waiting 0") }
      #expect(try await rig.tokens(of: ada) == 1)
      #expect(rig.pauses.asked == 20, "once for each attempt")
    }
  }

  /// The person may have signed in by way of another process: Apple would end that sign-in, too.
  @Test func aTokenThatTheStoreNeverTakesIsNotRevokedBlindly() async throws {
    try await Rig.run { rig in
      rig.store.before = Rig.failing(.recordSignIn)
      let request = try await rig.request(ada)
      rig.expect(.unavailable, try await rig.signIn(request))
      #expect(rig.apple.isAuthorized(ada, for: Rig.app))
      await rig.signIns.drain()
      #expect(rig.apple.isAuthorized(ada, for: Rig.app) && rig.apple.revocationsAsked == rig.own)
      rig.store.before = { _ in }
      rig.expect(.beginAgain, try await rig.another().signIn(request))
      #expect(try await rig.tokens(of: ada) == 0)
      #expect(try await rig.unfinished() == 1)
    }
  }

  /// Apple would tell of it as if they had withdrawn consent, and all that is theirs be erased.
  @Test(arguments: [true, false])
  func whoHasSomebodyElsesCodeEndsNothingOfTheirs(_ isKnown: Bool) async throws {
    try await Rig.run { rig in
      let bob = Person(named: "Bob")
      if isKnown { #expect(try await rig.signIn(try await rig.request(bob)).get().isNew) }
      let request = try await rig.request(ada, withCodeOf: bob)
      for _ in 1...2 { rig.expect(.codeRefused, try await rig.signIn(request)) }
      await rig.signIns.drain()
      #expect(try await rig.unfinished() == 0)
      #expect(rig.apple.isAuthorized(bob, for: Rig.app) && rig.apple.revocationsAsked == rig.own)
      #expect(try await rig.tokens(of: bob) == (isKnown ? 1 : 0))
      #expect(try await rig.tokens(of: ada) == 0)
    }
  }

  /// Nothing else of theirs is there that would end it later.
  @Test func theTokenOfASignInThatIsOverIsRevoked() async throws {
    try await Rig.run { rig in
      try await rig.end(ada)
      rig.expect(.beginAgain, try await rig.signIn(try await rig.request(ada)))
      await rig.signIns.drain()
      #expect(!rig.apple.isAuthorized(ada, for: Rig.app) && rig.apple.revocationsAsked == rig.own + 1)
      #expect(try await rig.tokens(of: ada) == 0)
    }
  }

  /// Apple ends the authorizations of all apps that share consent with that of one.
  @Test(arguments: [true, false])
  func whoIsSignedInToAnotherAppThatSharesConsentStaysSo(_ sharesConsent: Bool) async throws {
    try await Rig.run(groups: sharesConsent ? nil : [[Rig.app], [Rig.web]]) { rig in
      let web = NewToken(
        kind: .refresh, client: try #require(ClientID(Rig.web)), value: try #require(SecretToken("of-the-web")))
      _ = try await rig.store.recordSignIn(try rig.account(ada), at: .now - .seconds(60), tokens: [web])
      try await rig.end(ada)
      rig.expect(.beginAgain, try await rig.signIn(try await rig.request(ada)))
      await rig.signIns.drain()
      #expect(rig.apple.isAuthorized(ada, for: Rig.app) == sharesConsent)
      #expect(rig.apple.revocationsAsked == rig.own + (sharesConsent ? 0 : 1))
    }
  }

  /// An access token ends within the hour, and nobody could revoke by it then.
  @Test func aTokenThatIsNoRefreshTokenCoversNothing() async throws {
    try await Rig.run { rig in
      let old = NewToken(
        kind: .access, client: try #require(ClientID(Rig.web)), value: try #require(SecretToken("of-an-hour-ago")))
      _ = try await rig.store.recordSignIn(try rig.account(ada), at: .now - .seconds(4000), tokens: [old])
      try await rig.end(ada)
      rig.expect(.beginAgain, try await rig.signIn(try await rig.request(ada)))
      await rig.signIns.drain()
      #expect(try await rig.tokens(of: ada) == 1)
      #expect(!rig.apple.isAuthorized(ada, for: Rig.app))
    }
  }

  /// Or Apple would end the token that it may have granted for that.
  @Test func nothingIsRevokedWhileTheSamePersonSignsIn() async throws {
    try await Rig.run { rig in
      let exchange = try await begin(of: ada, at: .now, in: rig)
      try await rig.end(ada)
      rig.expect(.beginAgain, try await rig.signIn(try await rig.request(ada)))
      // It is asked again: the first answer was heeded.
      try await until { rig.store.counts[.signInUnderWay, default: 0] > 1 }
      #expect(rig.apple.isAuthorized(ada, for: Rig.app) && rig.apple.revocationsAsked == rig.own)
      try await rig.store.end(exchange, as: .refused)
      try await until { rig.registry.text.contains("siwa_accounts_tokens_waiting 0") }
      #expect(!rig.apple.isAuthorized(ada, for: Rig.app))
    }
  }

  /// It was broken off, and our clock has to come so far first.
  @Test func aSignInThatWasBegunByAClockFarAheadHoldsNothingUp() async throws {
    try await Rig.run { rig in
      _ = try await begin(of: ada, at: .now + .seconds(7200), in: rig)
      try await rig.end(ada)
      rig.expect(.beginAgain, try await rig.signIn(try await rig.request(ada)))
      try await until { rig.registry.text.contains("siwa_accounts_tokens_waiting 0") }
      #expect(!rig.apple.isAuthorized(ada, for: Rig.app))
    }
  }

  /// Notes an exchange of which nothing comes.
  private func begin(of person: Person, at time: Timestamp, in rig: Rig) async throws -> CodeExchange {
    func digest(_ text: String) -> SHA256Digest { SHA256.digest(of: Array(text.utf8)) }
    let exchange = CodeExchange(
      request: digest("request"), content: digest("content"), code: digest("code"),
      account: rig.store.id(of: try rig.account(person)), client: try #require(ClientID(Rig.app)), begunAt: time)
    #expect(try await rig.store.begin(exchange) == .begun)
    return exchange
  }

  /// The person has withdrawn nothing: Apple tells of our own doing. It may do so before anything else comes here.
  @Test func nothingIsRevokedUnaskedBeforeItIsNotedAsOurOwnDoing() async throws {
    try await Rig.run { rig in
      try await rig.end(ada)
      rig.store.before = Rig.failing(.noteOwnRevocation)
      rig.expect(.beginAgain, try await rig.signIn(try await rig.request(ada)))
      try await until { rig.pauses.asked > 0 && rig.store.counts[.noteOwnRevocation, default: 0] > 0 }
      #expect(rig.apple.isAuthorized(ada, for: Rig.app) && rig.apple.revocationsAsked == rig.own)
      rig.store.before = { _ in }
      await rig.signIns.drain()
      #expect(!rig.apple.isAuthorized(ada, for: Rig.app) && rig.apple.revocationsAsked == rig.own + 1)
      #expect(try await rig.store.ownRevocations(of: rig.account(ada)).map(\.client.text) == [Rig.app])
    }
  }

  /// Its outcome is in the store, and what is left to be done changes nothing about it.
  @Test func theSameRequestIsAnsweredTheSameWhileItsTokenWaitsToBeRevoked() async throws {
    try await Rig.run { rig in
      try await rig.end(ada)
      let request = try await rig.request(ada)
      rig.store.before = Rig.failing(.knowledge)
      rig.expect(.beginAgain, try await rig.signIn(request))
      #expect(rig.registry.text.contains("siwa_accounts_tokens_waiting 1"))
      #expect(try await rig.unfinished() == 0)
      rig.expect(.beginAgain, try await rig.signIn(request))
      rig.store.before = { _ in }
    }
  }

  /// Without an Idempotency-Key the code is what tells requests apart.
  @Test func aCodeThatCameWithAnotherRequestIsNoMatterOfAKey() async throws {
    try await Rig.run { rig in
      let request = try await rig.request(ada)
      #expect(try await rig.signIn(request).get().isNew)
      let other = try rig.another(request, redirectURI: "https://shop.example/other")
      rig.expect(.beginAgain, try await rig.signIn(other))
      let named = try await rig.request(ada)
      #expect(try await !rig.signIn(named, named: "a-key").get().isNew)
      let wrong = try rig.another(named, redirectURI: "https://shop.example/other")
      rig.expect(.idempotencyKeyReused, try await rig.signIn(wrong, named: "a-key"))
    }
  }

  /// Apple has signed the exchange's identity token with a key that cannot be had yet.
  @Test func aTokenOfWhichNobodyCanSayWhoseItIsIsNotRevoked() async throws {
    try await Rig.run { rig in
      #expect(try await rig.signIn(try await rig.request(ada)).get().isNew)
      let request = try await rig.request(ada)
      for _ in 1...3 { _ = try rig.apple.rotateKeys() }
      rig.apple.keysAnswer = .unavailable
      rig.expect(.beginAgain, try await rig.signIn(request))
      await rig.signIns.drain()
      #expect(rig.apple.isAuthorized(ada, for: Rig.app) && rig.apple.revocationsAsked == rig.own)
      #expect(try await rig.tokens(of: ada) == 1)
    }
  }

  /// The commit has happened, and its answer was lost.
  @Test func aSignInThatIsKeptThoughNobodyKnowsIsNotKeptTwice() async throws {
    try await Rig.run { rig in
      rig.store.after = Rig.failing(.recordSignIn, .uncertain)
      let request = try await rig.request(ada)
      rig.expect(.unavailable, try await rig.signIn(request))
      rig.store.after = { _ in }
      await rig.signIns.drain()
      #expect(try await rig.tokens(of: ada) == 1 && rig.apple.isAuthorized(ada, for: Rig.app))
      #expect(try await rig.another().signIn(request).get().isNew)
    }
  }

  /// The application whose first answer was lost would open a session that nobody ends.
  @Test func theSameRequestBeginsAgainOnceTheDeletionWasAskedFor() async throws {
    try await Rig.run { rig in
      let request = try await rig.request(ada)
      #expect(try await rig.signIn(request).get().isNew)
      #expect(try await rig.signIn(request).get().isNew)
      let (asked, deletion) = (rig.apple.tokensAsked, try #require(EventID("a-deletion")))
      _ = try await rig.store.requestDeletion(
        of: rig.account(ada), in: try #require(ClientID(Rig.app)), as: deletion, at: .now)
      rig.expect(.beginAgain, try await rig.signIn(request))
      #expect(rig.apple.tokensAsked == asked)
      // Who signs in again begins anew.
      #expect(try await rig.signIn(try await rig.request(ada)).get().isNew == false)
    }
  }

  @Test func withoutAStoreAppleIsNotAsked() async throws {
    try await Rig.run { rig in
      let request = try await rig.request(ada)
      let asked = rig.apple.tokensAsked
      rig.store.before = Rig.failing(.begin)
      rig.expect(.unavailable, try await rig.signIn(request))
      #expect(rig.apple.tokensAsked == asked)
      rig.store.before = { _ in }
      #expect(try await rig.signIn(request).get().isNew)
    }
  }

  @Test(arguments: [TokensAnswer.unavailable, .lost, .cutOff, .failedLate])
  func anAnswerThatNobodyUnderstandsHasThePersonBeginAgain(_ answer: TokensAnswer) async throws {
    try await Rig.run { rig in
      let request = try await rig.request(ada)
      rig.apple.tokensAnswer = answer
      rig.expect(.beginAgain, try await rig.signIn(request))
      rig.apple.tokensAnswer = .tokens
      let asked = rig.apple.tokensAsked
      rig.expect(.beginAgain, try await rig.signIn(request))
      #expect(rig.apple.tokensAsked == asked)

      // Looked after for a day, unless a token comes that ends the same authorization.
      let exchanges = ExchangeWatch(
        rig.store, metrics: rig.metrics, logger: rig.logger, now: { .now + .seconds(22 * 3600) })
      try await exchanges.look()
      #expect(try await rig.unfinished() == 1)
      #expect(try await rig.signIn(try await rig.request(ada)).get().isNew)
      try await exchanges.look()
      #expect(try await rig.unfinished() == 0)
      #expect(rig.registry.text.contains("siwa_accounts_exchanges_unresolved_total 0"))
      // Its code is sent never again.
      let now = rig.apple.tokensAsked
      rig.expect(.beginAgain, try await rig.signIn(request))
      #expect(rig.apple.tokensAsked == now)
    }
  }

  @Test func anExchangeThatIsNeverCoveredIsSaidWithinADay() async throws {
    try await Rig.run { rig in
      rig.apple.tokensAnswer = .lost
      let request = try await rig.request(ada, asking: .tokens)
      rig.expect(.beginAgain, try await rig.signIn(request))
      let exchanges = ExchangeWatch(
        rig.store, metrics: rig.metrics, logger: rig.logger, now: { .now + .seconds(23 * 3600 + 1) })
      try await exchanges.look()
      #expect(try await rig.unfinished() == 0)
      #expect(rig.registry.text.contains("siwa_accounts_exchanges_unresolved_total 1"))
    }
  }

  /// A token of before may have been dead by then, unless Apple calls it good afterwards.
  @Test func aTokenOfBeforeCoversNoExchangeThatWasBrokenOff() async throws {
    try await Rig.run { rig in
      let old = NewToken(
        kind: .refresh, client: try #require(ClientID(Rig.app)), value: try #require(SecretToken("of-yesterday")))
      _ = try await rig.store.recordSignIn(try rig.account(ada), at: .now - .seconds(86_400), tokens: [old])
      rig.apple.tokensAnswer = .lost
      rig.expect(.beginAgain, try await rig.signIn(try await rig.request(ada, asking: .tokens)))
      for (hours, left) in [(22, 1), (24, 1), (26, 0)] as [(Int64, Int)] {
        let exchanges = ExchangeWatch(
          rig.store, metrics: rig.metrics, logger: rig.logger, now: { .now + .seconds(hours * 3600) })
        try await exchanges.look()
        #expect(try await rig.unfinished() == left, "\(hours)")
      }
      #expect(rig.registry.text.contains("siwa_accounts_exchanges_unresolved_total 1"))
    }
  }

  @Test func whereAppleCannotBeAskedTheSameRequestMayComeAgain() async throws {
    try await Rig.run { rig in
      let request = try await rig.request(ada)
      rig.apple.tokensAnswer = .throttled
      guard case .failure(let problem) = try await rig.signIn(request) else { return #expect(Bool(false)) }
      #expect(problem.kind == .unavailable && problem.retryAfter == 30)
      rig.apple.tokensAnswer = .tokens
      #expect(try await rig.signIn(request).get().isNew)
    }
  }

  @Test func theSameRequestAtTheSameTimeIsOne() async throws {
    try await Rig.run { rig in
      let request = try await rig.request(ada)
      let asked = rig.apple.tokensAsked
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 1...8 {
          group.addTask(executorPreference: Loop.executor) {
            let isNew = try await rig.signIn(request).get().isNew
            #expect(isNew)
          }
        }
        try await group.waitForAll()
      }
      #expect(rig.apple.tokensAsked == asked + 1)
      #expect(try await rig.tokens(of: ada) == 1)
    }
  }

  // MARK: Access tokens

  @Test func aFreshAccessTokenComesByTheRefreshTokenThatIsKept() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn(try await rig.request(ada)).get().id
      let first = try await rig.accessToken(id).get()
      let second = try await rig.accessToken(id, for: Rig.app).get()
      #expect(first.client.text == Rig.app && first.token.text != second.token.text && first.lifetime > .zero)
      let kept = try await rig.stored(ada).map(\.token.value.text)
      #expect(kept.count == 1 && !kept.contains(first.token.text))
      rig.expect(.clientNotAllowed, try await rig.accessToken(id, for: "com.example.other"))
    }
  }

  @Test func whatEndedTheAuthorizationEndsItsAccessTokens() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn(try await rig.request(ada)).get().id
      for token in try await rig.stored(ada) { try await rig.revoke(token) }
      rig.expect(.authorizationEnded, try await rig.accessToken(id))
    }
  }

  @Test func whoSignsInAgainMeanwhileHasAnAccessToken() async throws {
    try await Rig.run { rig in
      let code = try #require(AuthorizationCode(try rig.apple.signIn(ada, to: Rig.app)))
      guard case .granted(let grant) = try await rig.endpoints.exchange(code, redirectURI: nil, by: rig.client) else {
        return #expect(Bool(false))
      }
      let old = NewToken(
        kind: .refresh, client: rig.client, value: try #require(SecretToken(grant.refreshToken?.text ?? "")))
      let account = try rig.account(ada)
      _ = try await rig.store.recordSignIn(account, at: .now - .seconds(3600), tokens: [old])
      let id = rig.store.id(of: account)
      for token in try await rig.stored(ada) { try await rig.revoke(token) }
      let request = try await rig.request(ada)
      var looks = 0
      rig.store.gate = { call in
        guard call == .lastDeletion else { return }
        looks += 1
        guard looks == 2 else { return }
        do { _ = try await rig.signIn(request).get() } catch { Issue.record(error) }
      }
      #expect(try await rig.accessToken(id).get().client.text == Rig.app)
      rig.store.gate = { _ in }
    }
  }

  @Test func whoAsksForTheirDeletionGetsNoMoreAccessTokens() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn(try await rig.request(ada)).get().id
      let deletion = try #require(EventID("a-deletion"))
      let account = try rig.account(ada)
      _ = try await rig.store.requestDeletion(
        of: account, in: try #require(ClientID(Rig.app)), as: deletion, at: .now)
      let asked = rig.apple.tokensAsked
      rig.expect(.authorizationEnded, try await rig.accessToken(id))
      #expect(rig.apple.tokensAsked == asked)
      // Who signs in again begins anew.
      #expect(try await rig.signIn(try await rig.request(ada)).get().isNew == false)
      #expect(try await rig.accessToken(id).get().client.text == Rig.app)
    }
  }

  @Test func whereAppleThrottlesTheApplicationIsToldHowLong() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn(try await rig.request(ada)).get().id
      rig.apple.tokensAnswer = .throttled
      guard case .failure(let problem) = try await rig.accessToken(id) else { return #expect(Bool(false)) }
      #expect(problem.kind == .unavailable && problem.retryAfter == 31)
    }
  }

  @Test func ofSeveralAppsOneHasToBeNamed() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn(try await rig.request(ada)).get().id
      let web = NewToken(
        kind: .refresh, client: try #require(ClientID(Rig.web)), value: try #require(SecretToken("of-the-web")))
      _ = try await rig.store.recordSignIn(try rig.account(ada), at: .now, tokens: [web])
      rig.expect(.malformed, try await rig.accessToken(id))
      #expect(try await rig.accessToken(id, for: Rig.app).get().client.text == Rig.app)
    }
  }

  @Test(arguments: ["[]", #"{"client":"a"}"#, #"{"clientId":7}"#, #"{"clientId":""}"#, "{"])
  func aBodyThatIsNotOfItsFormIsRefused(_ body: String) {
    #expect(throws: Problem.self) { try unsafe AccessTokens.client(reading: Array(body.utf8).span.bytes) }
  }

  // MARK: Who asks, how often, and what they see

  @Test func aBucketIsFullAfterASecond() {
    let start = MonotonicTime(nanoseconds: 1_000_000_000)
    var limit = RateLimit(2, at: start)
    #expect(limit.take(at: start) == nil && limit.take(at: start) == nil)
    #expect(limit.take(at: start) == .milliseconds(500))
    #expect(limit.take(at: start + .milliseconds(250)) == .milliseconds(250))
    #expect(limit.take(at: start + .milliseconds(500)) == nil)
    let later = start + .seconds(60)
    #expect(limit.take(at: later) == nil && limit.take(at: later) == nil && limit.take(at: later) != nil)
  }

  @Test func twoTokensAreGoodAtOnceAndNoOther() throws {
    func digest(_ text: String) -> SHA256Digest { SHA256.digest(of: Array(text.utf8)) }
    let shop = AccountsSettings.Caller(name: "shop", clients: [], tokens: [digest("old"), digest("new")])
    let callers = Callers([shop, .init(name: "other", clients: [], tokens: [digest("else")])], rate: 1)
    #expect(callers.caller(showing: "Bearer old") == shop && callers.caller(showing: "bearer new") == shop)
    #expect(callers.caller(showing: "Bearer else")?.name == "other")
    for wrong in [nil, "", "Bearer", "Bearer ", "old", "Basic old", "Bearer older", "Bearer  old"] {
      #expect(callers.caller(showing: wrong) == nil, "\(wrong ?? "nothing")")
    }
  }
}

/// In place of chance: how long is rested between attempts, and how often that was asked.
private final class Pauses: Sendable {
  private let state = Mutex((part: 1.0, asked: 0))

  var asked: Int { state.withLock { $0.asked } }

  /// From now on nobody rests.
  func end() { state.withLock { $0.part = 0 } }

  func next() -> Double {
    state.withLock { state in
      state.asked += 1
      return state.part
    }
  }
}

/// Sign-ins against a simulated Apple and a store that fails where a test wants it.
@Loop
private final class Rig {
  nonisolated static let (team, app, web) = ("A1B2C3D4E5", "com.example.app", "com.example.web")
  private nonisolated static let ring: KeyRing = {
    do { return try KeyRing(generating: 1) } catch { fatalError("\(error)") }
  }()

  let apple: SimulatedApple
  let store: WatchedStore
  let registry = MetricsRegistry()
  let metrics: AccountsMetrics
  let logger: Logger
  /// What part of the longest pauses is rested.
  let pauses = Pauses()
  private(set) var signIns: SignIns
  /// How many revocations the rig has asked for itself.
  private(set) var own = 0
  let endpoints: AppleTokenEndpoints
  private let tokens: IdentityTokens
  private let groups: ConsentGroups
  let client: ClientID

  /// Runs `body`; `groups` are the apps that share consent, nil is all.
  static func run(
    groups: [[String]]? = nil, _ body: @Loop (Rig) async throws -> Void
  ) async throws {
    let named = try groups.map { groups in
      [try #require(TeamID(team)): try groups.map { Set(try $0.map { try #require(ClientID($0)) }) }]
    }
    let apple = SimulatedApple(
      ring: ring, issuer: AppleNotification.appleIssuer, trustAnchors: .system, clock: { .now })
    let server = try SimulatedAppleServer(apple, port: 0, tls: nil)
    let files = TemporaryDirectory()
    let key = try #require(MasterKey(try SecureRandom.bytes(32)))
    try await SQLiteAccountStore.begin(files.path + "/store.sqlite", key)
    let store = WatchedStore(try await SQLiteAccountStore.open(files.path + "/store.sqlite", key))
    let logger = Logger(level: .error, format: .text)
    let keys = AppleKeys(
      AppleSettings(
        issuer: AppleNotification.appleIssuer, keysURL: try #require(HTTPClientURL(server.keysURL)),
        keysFile: files.path + "/keys.json", keysRefresh: .seconds(3600), keysPause: .seconds(1),
        deadline: .seconds(300), clockTolerance: .seconds(60), trustedCA: nil, proxy: .none),
      userAgent: "tests", registry: MetricsRegistry(), logger: logger)
    let rig = try Rig(apple, server, store, keys, ConsentGroups(named ?? [:]), logger)
    try await withThrowingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { await server.run() }
      group.addTask(executorPreference: Loop.executor) { await keys.run() }
      defer { group.cancelAll() }
      try await until { !keys.current.keyIDs.isEmpty }
      try await body(rig)
      await rig.signIns.drain()
    }
    await store.close()
  }

  private init(
    _ apple: SimulatedApple, _ server: SimulatedAppleServer, _ store: WatchedStore, _ keys: AppleKeys,
    _ groups: ConsentGroups, _ logger: Logger
  ) throws {
    (self.apple, self.store, self.groups, self.logger) = (apple, store, groups, logger)
    client = try #require(ClientID(Self.app))
    let team = try #require(TeamID(Self.team))
    let key = try apple.enroll(team: Self.team, clients: [Self.app])
    endpoints = AppleTokenEndpoints(
      token: try #require(HTTPClientURL(server.tokenURL)),
      revocation: try #require(HTTPClientURL(server.revocationURL)),
      client: HTTPClient(
        HTTPClientConfiguration(
          userAgent: "tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 8,
          maximumRequests: 64)),
      secrets: ClientSecrets(
        keys: [
          client: TeamKey(
            team: team, id: try #require(KeyID(key.id)), privateKey: try P256PrivateKey(pem: key.privateKeyPEM))
        ], audience: AppleNotification.appleIssuer, lifetime: .seconds(3600), now: { .now }),
      deadline: .seconds(300))
    tokens = IdentityTokens(
      IdentityTokenVerifier(
        issuer: AppleNotification.appleIssuer, teams: [client: team], clockTolerance: .seconds(60)), keys, now: { .now }
    )
    metrics = AccountsMetrics(registry)
    signIns = SignIns(
      store, endpoints, tokens, groups, metrics: metrics, logger: logger, now: { .now },
      random: { [pauses] in pauses.next() })
  }

  /// As another process would, after this one.
  func another() -> Rig {
    signIns = SignIns(
      store, endpoints, tokens, groups, metrics: metrics, logger: logger, now: { .now },
      random: { [pauses] in pauses.next() })
    return self
  }

  /// What Apple gives to who signs in, with an identity token of another sign-in of theirs.
  func request(
    _ person: Person, asking answer: TokensAnswer? = nil, withCodeOf other: Person? = nil
  ) async throws -> SignInRequest {
    let before = apple.tokensAnswer
    if let answer { apple.tokensAnswer = answer }
    let grant = try await endpoints.exchange(
      try #require(AuthorizationCode(try apple.signIn(person, to: Self.app))), redirectURI: nil, by: client)
    apple.tokensAnswer = before
    guard case .granted(let granted) = grant else { throw CancellationError() }
    // Unless the person has one of another sign-in.
    if try await tokens(of: person) == 0 {
      try await endpoints.revoke(granted.accessToken, of: client)
      own += 1
    }
    let body: JSONValue = [
      "identityToken": .string(try #require(granted.identityToken).text),
      "authorizationCode": .string(try apple.signIn(other ?? person, to: Self.app)), "clientId": .string(Self.app),
    ]
    return try unsafe SignInRequest(reading: body.bytes.span.bytes)
  }

  /// The same, but for where the person was sent back to.
  func another(_ request: SignInRequest, redirectURI: String) throws -> SignInRequest {
    let body: JSONValue = [
      "identityToken": .string(request.identityToken.text), "authorizationCode": .string(request.code.text),
      "clientId": .string(Self.app), "redirectUri": .string(redirectURI),
    ]
    return try unsafe SignInRequest(reading: body.bytes.span.bytes)
  }

  func signIn(_ request: SignInRequest, named key: String? = nil) async throws -> Result<SignedIn, Problem> {
    do throws(Problem) {
      return .success(try await signIns.signIn(request, named: key, by: "shop"))
    } catch {
      return .failure(error)
    }
  }

  /// A caller with two apps asks for an access token.
  func accessToken(
    _ id: AccountID, for client: String? = nil
  ) async throws -> Result<AccessTokens.Granted, Problem> {
    let (team, web) = (try #require(TeamID(Self.team)), try #require(ClientID(Self.web)))
    let sight = AccountSight(teams: [self.client: team, web: team], groups: ConsentGroups([:]))
    let asked = client.flatMap { ClientID($0) }
    do throws(Problem) {
      return .success(
        try await AccessTokens(store, endpoints, sight, logger: logger).refresh(id, for: asked, of: [self.client, web]))
    } catch {
      return .failure(error)
    }
  }

  /// Ends the person's authorization of the app, with what is signed in within the hour.
  func end(_ person: Person) async throws {
    let account = try account(person)
    let event = AccountEvent(
      id: try #require(EventID("the-end-of-\(person.subject)")), team: account.team, audience: client,
      subject: account.subject, kind: .consentRevoked, occurredAt: .now + .seconds(3600), issuedAt: .now)
    let end = Settlement(
      of: .of(event, store), by: .tokenRevoker, outcome: "tokens-revoked",
      changes: [.endTokens(issuedUpTo: event.occurredAt, of: [client])])
    #expect(try await store.settle([end], at: .now) == [.applied])
  }

  func account(_ person: Person) throws -> Account {
    Account(team: try #require(TeamID(Self.team)), subject: try #require(AppleSubject(person.subject)))
  }

  func stored(_ person: Person) async throws -> [StoredToken] {
    try await store.tokens(of: try account(person))
  }

  /// As somebody else would, without the store's knowing of it.
  func revoke(_ token: StoredToken) async throws {
    try await endpoints.revoke(try #require(RefreshToken(token.token.value.text)), of: client)
  }

  func expect<Value>(
    _ kind: Problem.Kind, _ result: Result<Value, Problem>, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    guard case .failure(let problem) = result else {
      Issue.record("it succeeded", sourceLocation: sourceLocation)
      return
    }
    #expect(problem.kind == kind, "\(problem)", sourceLocation: sourceLocation)
  }

  func tokens(of person: Person) async throws -> Int {
    try await store.tokens(
      of: Account(team: try #require(TeamID(Self.team)), subject: try #require(AppleSubject(person.subject)))
    ).count
  }

  func unfinished() async throws -> Int {
    try await store.unfinishedExchanges(before: .now + .seconds(86_400), limit: 10).count
  }

  static func failing(
    _ call: WatchedStore.Call, _ code: AccountStoreError.Code = .unavailable
  ) -> WatchedStore.Watch {
    { made throws(AccountStoreError) in if made == call { throw AccountStoreError(code, "as the test wants") } }
  }
}

extension MetricsRegistry {
  fileprivate var text: String { String(decoding: render(), as: UTF8.self) }
}
