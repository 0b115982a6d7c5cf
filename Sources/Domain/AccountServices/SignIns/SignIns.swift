import AccountEvents
import AccountStore
import AppleID
import Cryptography
import EventLoop
import Telemetry

/// A sign-in that succeeded.
struct SignedIn {
  let token: VerifiedIdentityToken
  let id: AccountID
  let isNew: Bool
  /// When it counts as made: what ends sessions of before is not later.
  let at: Timestamp
  let relay: RelayKnowledge
  /// Whom the operator knows the person as, where they come from another team and were recognized.
  let transfer: RecognizedTransfer?
}

/// Signs people in: believes their identity tokens, exchanges their codes, each once, and has the store keep the tokens.
///
/// Before Apple is asked, the exchange is noted in the store; with the tokens it is finished, in one transaction. So whoever
/// repeats a request gets the same answer, or is told to begin again where nobody knows what came of it. A token that the
/// store does not take is offered to it again, for an hour at most, or until the program ends.
///
/// To revoke a token at Apple ends the person's whole authorization for the app, and Apple says so as if the person had
/// withdrawn consent, which ends that of all apps that share it. So none is revoked but where it is known whose it is, that no
/// living one of that person and those apps is held, and that no sign-in of theirs is under way; and it is noted that it was
/// our doing. Whatever else cannot be kept stays noted as an exchange of which nobody knows what came (`ExchangeWatch`).
@Loop
final class SignIns {
  /// How many sign-ins may be on their way at once, those included whose tokens wait for the store.
  private static let mostUnderWay = 1024
  /// How long a token may wait for the store.
  private static let patience = Duration.seconds(3600)
  /// How long a sign-in is taken to be under way of which nothing comes.
  private static let longestSignIn = Duration.seconds(120)
  private static let pace = RetryPace(first: .seconds(1), longest: .seconds(30))

  private typealias Outcome = Result<(isNew: Bool, at: Timestamp), Problem>

  /// A request that is not over.
  private struct UnderWay {
    let content: SHA256Digest
    let task: Task<Outcome, Never>
  }

  /// Work that a request has left behind.
  private struct Held {
    let number: Int
    let content: SHA256Digest
    /// Whether the outcome of the request depends on it.
    let decides: Bool
    let task: Task<Void, Never>
  }

  private let store: any AccountStore
  private let endpoints: AppleTokenEndpoints
  private let tokens: IdentityTokens
  private let groups: ConsentGroups
  private let metrics: AccountsMetrics
  private let logger: Logger
  private let now: @Sendable () -> Timestamp
  private let random: @Sendable () -> Double
  private var underWay: [SHA256Digest: UnderWay] = [:]
  /// Tokens that wait for the store or to be revoked, by the request that they were granted for.
  private var waiting: [SHA256Digest: Held] = [:]
  private var lastHeld = 0
  private var naps: [SHA256Digest: Task<Void, Never>] = [:]
  private var isEnding = false

  /// Signs people in with these; `groups` say which apps share consent, and `random` is from 0 to 1.
  init(
    _ store: any AccountStore, _ endpoints: AppleTokenEndpoints, _ tokens: IdentityTokens, _ groups: ConsentGroups,
    metrics: AccountsMetrics, logger: Logger, now: @escaping @Sendable () -> Timestamp,
    random: @escaping @Sendable () -> Double
  ) {
    (self.store, self.endpoints, self.tokens, self.groups) = (store, endpoints, tokens, groups)
    (self.metrics, self.logger, self.now, self.random) = (metrics, logger, now, random)
  }

  /// Signs somebody in, or finds what came of the same request before.
  func signIn(_ request: SignInRequest, named key: String?, by caller: String) async throws(Problem) -> SignedIn {
    let token = try await believe(request)
    let id = store.id(of: token.account)
    let exchange = request.exchange(of: id, named: key, by: caller, at: now())
    let outcome = await outcome(of: exchange, request, token).mapError { problem in
      // Without a name of the caller's, the code is what names the request.
      problem.kind == .idempotencyKeyReused && key == nil ? .otherRequest : problem
    }
    metrics.count(AccountsMetrics.Outcome(outcome))
    let (isNew, at) = try outcome.get()
    do throws(AccountStoreError) {
      // Apple leaves the claim out once the time for it is over; the store knows by then who most of them are.
      let transfer =
        if let claim = TransferClaim(token) {
          try await store.recognizedTransfer(of: token.account, claiming: claim)
        } else {
          try await store.recognizedTransfer(of: token.account, with: token.client)
        }
      let relay = try await store.relayStates(of: [token.account]).first ?? .unknown
      return SignedIn(token: token, id: id, isNew: isNew, at: at, relay: relay, transfer: transfer)
    } catch {
      throw .unavailable("The sign-in is kept; the account store does not answer. Repeat the same request.")
    }
  }

  /// Waits until every token is kept, or revoked.
  func drain() async {
    isEnding = true
    for nap in naps.values { nap.cancel() }
    while let task = underWay.first?.value.task { _ = await task.value }
    for nap in naps.values { nap.cancel() }
    while let held = waiting.first?.value { await held.task.value }
  }

  // MARK: Steps

  private func believe(_ request: SignInRequest) async throws(Problem) -> VerifiedIdentityToken {
    switch await tokens.judge(
      request.identityToken, of: ExpectedSignIn(to: request.client, nonce: request.nonce, code: request.code))
    {
    case .verified(let token): return token
    case .refused(let refusal):
      metrics.count(.tokenRefused)
      throw Problem(.identityTokenRefused, refusal.description, reason: refusal.rawValue)
    case .undecided:
      metrics.count(.unavailable)
      throw .unavailable("Apple's keys cannot be had. Repeat the same request.")
    }
  }

  /// Joins the same request where it is under way, or makes it.
  private func outcome(
    of exchange: CodeExchange, _ request: SignInRequest, _ token: VerifiedIdentityToken
  ) async -> Outcome {
    if let same = underWay[exchange.request] {
      guard same.content == exchange.content else { return .failure(.otherContent) }
      return await same.task.value
    }
    if let held = waiting[exchange.request], held.decides {
      return .failure(held.content == exchange.content ? .notKept : .otherContent)
    }
    guard !isEnding, underWay.count + waiting.count < Self.mostUnderWay else {
      return .failure(.unavailable("Too much is under way. Repeat the same request."))
    }
    // It goes on where the application hangs up: Apple may have granted tokens by then.
    let task = Task(executorPreference: Loop.executor) { await self.makeOnce(exchange, request, token) }
    underWay[exchange.request] = UnderWay(content: exchange.content, task: task)
    return await task.value
  }

  private func makeOnce(
    _ exchange: CodeExchange, _ request: SignInRequest, _ token: VerifiedIdentityToken
  ) async -> Outcome {
    let outcome = await make(exchange, request, token)
    underWay[exchange.request] = nil
    return outcome
  }

  private func make(
    _ exchange: CodeExchange, _ request: SignInRequest, _ token: VerifiedIdentityToken
  ) async -> Outcome {
    do throws(AccountStoreError) {
      switch try await store.begin(exchange) {
      case .begun: break
      case .finished(.new, let time): return .success((true, time))
      case .finished(.known, let time): return .success((false, time))
      case .finished(.over, _): return .failure(.over)
      case .finished(.refused, _): return .failure(.codeRefused)
      case .unfinished: return .failure(.brokenOff)
      case .otherContent: return .failure(.otherContent)
      case .codeUsed: return .failure(.beginAgain("Another request has used the authorization code."))
      }
    } catch {
      note("a sign-in could not be noted", error)
      return .failure(.unavailable("The account store does not answer. Repeat the same request."))
    }
    let grant: Grant
    do throws(AppleTokenError) {
      grant = try await endpoints.exchange(request.code, redirectURI: request.redirectURI, by: request.client)
    } catch {
      return await failed(exchange, error)
    }
    guard case .granted(let granted) = grant, let refresh = granted.refreshToken,
      let own = granted.identityToken
    else {
      await end(exchange) { store throws(AccountStoreError) in try await store.end(exchange, as: .refused) }
      return .failure(.codeRefused)
    }
    return await keep(refresh, of: exchange, token, by: await judge(own, beside: granted.accessToken, request))
  }

  /// Judges the identity token of the exchange. Apple need not repeat the nonce of the sign-in there.
  private func judge(
    _ token: UnverifiedIdentityToken, beside access: AccessToken, _ request: SignInRequest
  ) async -> IdentityTokens.Judgement {
    let judgement = await tokens.judge(
      token, of: ExpectedSignIn(to: request.client, nonce: request.nonce, accessToken: access))
    guard case .refused(.missingNonce) = judgement else { return judgement }
    return await tokens.judge(token, of: ExpectedSignIn(to: request.client, nonce: nil, accessToken: access))
  }

  private func keep(
    _ refresh: RefreshToken, of exchange: CodeExchange, _ token: VerifiedIdentityToken,
    by judgement: IdentityTokens.Judgement
  ) async -> Outcome {
    guard case .verified(let own) = judgement, let value = SecretToken(refresh.text) else {
      // Whose it is, nobody here knows: Apple's keys cannot be had, or the clocks lie apart. It may well be the person's.
      logger.error(
        "an exchange gave tokens of nobody known: they are not kept",
        [
          "account.hash": .describing(store.hash(of: token.account)), "client": .describing(exchange.client),
          "cause": .string(judgement.cause),
        ])
      return .failure(.brokenOff)
    }
    guard own.account == token.account else {
      logger.error(
        "an exchange gave tokens of somebody else: they are not kept",
        [
          "account.hash": .describing(store.hash(of: token.account)), "client": .describing(exchange.client),
          "owner.hash": .describing(store.hash(of: own.account)),
        ])
      await end(exchange) { store throws(AccountStoreError) in try await store.end(exchange, as: .refused) }
      hold(exchange, decides: false) { await self.revokeUnlessCovered(refresh, of: own.account, exchange) }
      return .failure(.codeOfSomebodyElse)
    }
    let signIn = Kept(
      account: own.account, at: own.issuedAt, claim: TransferClaim(token), refresh: refresh,
      token: NewToken(kind: .refresh, client: exchange.client, value: value))
    do throws(AccountStoreError) {
      return await settle(signIn, of: exchange, as: try await record(signIn, of: exchange))
    } catch {
      note("a sign-in could not be kept, and is offered to the store again", error)
      hold(exchange, decides: true) { await self.offer(signIn, of: exchange) }
      return .failure(.notKept)
    }
  }

  /// A sign-in that the store is to keep.
  private struct Kept {
    let account: Account
    let at: Timestamp
    let claim: TransferClaim?
    let refresh: RefreshToken
    let token: NewToken
  }

  private func record(_ signIn: Kept, of exchange: CodeExchange) async throws(AccountStoreError) -> RecordedSignIn {
    try await store.recordSignIn(
      signIn.account, at: signIn.at, tokens: [signIn.token], of: exchange.request, claiming: signIn.claim)
  }

  /// What follows from what the store has recorded.
  private func settle(_ signIn: Kept, of exchange: CodeExchange, as recorded: RecordedSignIn) async -> Outcome {
    if let conflict = recorded.conflict {
      metrics.conflicts.increment()
      logger.error(
        "two accounts would have become one: they stay apart",
        [
          "account": .describing(store.id(of: signIn.account)), "client": .describing(exchange.client),
          "conflict": .string(conflict.rawValue),
        ])
    }
    guard !recorded.over.isEmpty else { return .success((recorded.isNew, recorded.at)) }
    hold(exchange, decides: false) { await self.revokeUnlessCovered(signIn.refresh, of: signIn.account, exchange) }
    return .failure(.over)
  }

  /// What follows where Apple did not answer with tokens.
  private func failed(_ exchange: CodeExchange, _ error: AppleTokenError) async -> Outcome {
    logger.warning(
      "a code could not be exchanged",
      [
        "client": .describing(exchange.client), "apple.error": .string(error.code.rawValue),
        "apple.detail": .string(error.detail),
      ])
    // Apple may have granted tokens that nobody gets: it stays noted as it is.
    if error.isUncertain { return .failure(.brokenOff) }
    if error.remedy == .none {
      await end(exchange) { store throws(AccountStoreError) in try await store.end(exchange, as: .refused) }
      return .failure(.codeRefused)
    }
    await end(exchange) { store throws(AccountStoreError) in try await store.forget(exchange) }
    let wait = error.retryAfter.map { max(1, Int($0.components.seconds)) } ?? 5
    return .failure(.unavailable("Apple cannot be asked now. Repeat the same request.", retryAfter: wait))
  }

  private func end(
    _ exchange: CodeExchange, _ body: @Loop (any AccountStore) async throws(AccountStoreError) -> Void
  ) async {
    do throws(AccountStoreError) { try await body(store) } catch {
      // It stays noted as one of which nobody knows what came: who repeats it has to begin again.
      note("what came of an exchange could not be noted", error)
    }
  }

  // MARK: Tokens that nobody else knows

  /// Goes on with `work` behind the request's answer. What takes the place of other work of the request follows from that,
  /// and is its last step.
  private func hold(_ exchange: CodeExchange, decides: Bool, _ work: @escaping @Loop () async -> Void) {
    lastHeld += 1
    let number = lastHeld
    waiting[exchange.request] = Held(
      number: number, content: exchange.content, decides: decides,
      task: Task(executorPreference: Loop.executor) { await self.carry(exchange, number, through: work) })
    metrics.waiting.set(Double(waiting.count))
  }

  private func carry(_ exchange: CodeExchange, _ number: Int, through work: @Loop () async -> Void) async {
    await work()
    guard waiting[exchange.request]?.number == number else { return }
    waiting[exchange.request] = nil
    metrics.waiting.set(Double(waiting.count))
  }

  /// Offers a sign-in to the store until it takes it. Where it does not, it stays noted that the exchange was broken off:
  /// the person may have signed in again by way of another process, whose token Apple would end with this one.
  private func offer(_ signIn: Kept, of exchange: CodeExchange) async {
    let end = MonotonicTime.now + Self.patience
    var attempts = 1
    repeat {
      await nap(for: Self.pace.pause(after: attempts, random: random()), of: exchange)
      attempts += 1
      do throws(AccountStoreError) {
        _ = await settle(signIn, of: exchange, as: try await record(signIn, of: exchange))
        return
      } catch {
        note("a sign-in could not be kept", error)
      }
    } while !isEnding && MonotonicTime.now < end
    logger.error(
      "a token was not kept: nobody knows it any more",
      ["account.hash": .describing(store.hash(of: signIn.account)), "client": .describing(exchange.client)])
  }

  /// Revokes a token that is kept for nobody; not where a living one of the person and of the apps that share consent is held,
  /// whose authorization Apple would end with it, and which ends this one in time. While the store cannot say that, or
  /// a sign-in of theirs is under way, it waits.
  private func revokeUnlessCovered(_ refresh: RefreshToken, of account: Account, _ exchange: CodeExchange) async {
    let end = MonotonicTime.now + Self.patience
    var (attempts, wait) = (0, Duration.zero)
    repeat {
      if attempts > 0 { await nap(for: max(Self.pace.pause(after: attempts, random: random()), wait), of: exchange) }
      attempts += 1
      switch await revoke(refresh, of: account, exchange) {
      case .done: return
      case .again(let pause): wait = pause
      }
    } while !isEnding && MonotonicTime.now < end
    logger.error(
      "a token that is not kept was not revoked",
      ["account.hash": .describing(store.hash(of: account)), "client": .describing(exchange.client)])
    metrics.unresolved.increment()
  }

  private enum Revocation {
    case done
    /// It is to be tried again, no sooner than after that.
    case again(Duration)
  }

  private func revoke(_ refresh: RefreshToken, of account: Account, _ exchange: CodeExchange) async -> Revocation {
    do throws(AccountStoreError) {
      if try await isCovered(account, exchange.client) { return .done }
      // Apple may have granted its token by now, and would end that with this one.
      let since = now() - Self.longestSignIn
      if try await store.signInUnderWay(of: store.id(of: account), after: since) != nil {
        return .again(.milliseconds(500))
      }
    } catch {
      note("nobody knows whether another token is held: one that is not kept is not revoked yet", error)
      return .again(.zero)
    }
    do throws(AppleTokenError) {
      try await endpoints.revoke(refresh, of: exchange.client)
    } catch {
      logger.warning(
        "a token that is not kept could not be revoked",
        ["client": .describing(exchange.client), "apple.error": .string(error.code.rawValue)])
      return .again(error.remedy == .none ? Self.pace.longest : error.retryAfter ?? .zero)
    }
    do throws(AccountStoreError) {
      try await store.noteOwnRevocation(of: account, for: exchange.client, at: now())
    } catch {
      // To revoke it once more changes nothing.
      note("a token that is not kept was revoked, which could not be noted yet", error)
      return .again(.zero)
    }
    logger.notice("a token that is not kept was revoked", ["client": .describing(exchange.client)])
    return .done
  }

  /// Whether a living token is held that Apple would end with one of this app's.
  private func isCovered(_ account: Account, _ client: ClientID) async throws(AccountStoreError) -> Bool {
    guard case .known(let profile) = try await store.knowledge(of: store.id(of: account)) else { return false }
    let sharing = groups.clients(of: account.team, sharing: client)
    return profile.signIns.contains { sharing?.contains($0.client) ?? true }
  }

  /// Sleeps, unless the program ends.
  private func nap(for duration: Duration, of exchange: CodeExchange) async {
    if isEnding { return }
    let nap = Task(executorPreference: Loop.executor) { await Self.sleep(for: duration) }
    naps[exchange.request] = nap
    await nap.value
    naps[exchange.request] = nil
  }

  private static func sleep(for duration: Duration) async {
    do { try await Loop.sleep(for: duration) } catch { return }  // the program ends
  }

  private func note(_ message: StaticString, _ error: AccountStoreError) {
    logger.error(message, ["store.error": .string(error.code.rawValue), "store.detail": .string(error.detail)])
  }
}

extension TransferClaim {
  /// What a token claims; nil where the app has not changed teams lately.
  fileprivate init?(_ token: VerifiedIdentityToken) {
    guard let subject = token.transferSubject else { return nil }
    self.init(
      subject, to: token.client, address: token.email?.address, isPrivate: token.email?.isPrivate ?? false)
  }
}

extension AccountsMetrics.Outcome {
  fileprivate init(_ outcome: Result<(isNew: Bool, at: Timestamp), Problem>) {
    switch outcome {
    case .success((let isNew, _)): self = isNew ? .new : .known
    case .failure(let problem):
      switch problem.kind {
      case .codeRefused, .idempotencyKeyReused: self = .codeRefused
      case .beginAgain: self = .beginAgain
      default: self = .unavailable
      }
    }
  }
}

extension Problem {
  fileprivate static let otherContent = Problem(
    .idempotencyKeyReused, "The Idempotency-Key was sent with another request. A new request wants a new one.")
  fileprivate static let otherRequest = beginAgain(
    "The authorization code was sent with another request. What was asked for with it before stands.")
  fileprivate static let codeRefused = Problem(
    .codeRefused,
    "The authorization code was used, is older than five minutes, or belongs to another app or redirect URI.")
  fileprivate static let codeOfSomebodyElse = Problem(
    .codeRefused, "Nobody knows that the authorization code is of the person whom the identity token names.")
  fileprivate static let brokenOff = beginAgain("Nobody knows what came of the authorization code.")
  fileprivate static let over = beginAgain("The authorization was over before its tokens became known.")
  fileprivate static let notKept = unavailable(
    "Apple took the code, and the account store does not answer yet. Repeat the same request.")
}
