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
/// repeats a request gets the same answer, or is told to begin again where nobody knows what came of it, or the sign-in was
/// ended since: nobody would end a session that began with it now. A token that the store does not take is offered to it
/// again, for an hour at most, or until the program ends; one of a sign-in that is over is revoked (`UnkeptTokens`), and one
/// of somebody else is left alone. Whatever else cannot be kept stays noted as an exchange of which nobody knows what came
/// (`ExchangeWatch`).
@Loop
final class SignIns {
  /// How many sign-ins may be on their way at once, those included whose tokens wait for the store.
  private static let mostUnderWay = 1024

  private typealias Outcome = Result<(isNew: Bool, at: Timestamp), Problem>

  /// A request that is not over.
  private struct UnderWay {
    let content: SHA256Digest
    let task: Task<Outcome, Never>
  }

  private let store: any AccountStore
  private let endpoints: AppleTokenEndpoints
  private let tokens: IdentityTokens
  private let metrics: AccountsMetrics
  private let logger: Logger
  private let now: @Sendable () -> Timestamp
  private let unkept: UnkeptTokens
  private var underWay: [SHA256Digest: UnderWay] = [:]
  private var isEnding = false

  /// Signs people in with these; `groups` say which apps share consent, and `random` is from 0 to 1.
  init(
    _ store: any AccountStore, _ endpoints: AppleTokenEndpoints, _ tokens: IdentityTokens, _ groups: ConsentGroups,
    metrics: AccountsMetrics, logger: Logger, now: @escaping @Sendable () -> Timestamp,
    random: @escaping @Sendable () -> Double
  ) {
    (self.store, self.endpoints, self.tokens) = (store, endpoints, tokens)
    (self.metrics, self.logger, self.now) = (metrics, logger, now)
    unkept = UnkeptTokens(store, endpoints, groups, metrics: metrics, logger: logger, now: now, random: random)
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
    unkept.hurry()
    while let task = underWay.first?.value.task { _ = await task.value }
    await unkept.drain()
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
    if let content = unkept.contentDecidedLater(exchange) {
      return .failure(content == exchange.content ? .notKept : .otherContent)
    }
    guard !isEnding, underWay.count + unkept.count < Self.mostUnderWay else {
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
      // It is their own authorization: Apple would tell its end as a withdrawn consent, by which they are erased.
      await end(exchange) { store throws(AccountStoreError) in try await store.end(exchange, as: .refused) }
      return .failure(.codeOfSomebodyElse)
    }
    let signIn = Kept(
      account: own.account, at: own.issuedAt, claim: TransferClaim(token), refresh: refresh,
      token: NewToken(kind: .refresh, client: exchange.client, value: value))
    do throws(AccountStoreError) {
      return await settle(signIn, of: exchange, as: try await record(signIn, of: exchange))
    } catch {
      note("a sign-in could not be kept, and is offered to the store again", error)
      unkept.hold(exchange, decides: true) { await self.offer(signIn, of: exchange) }
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
    unkept.revokeUnlessCovered(signIn.refresh, of: signIn.account, exchange)
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

  /// Offers a sign-in to the store until it takes it. Where it does not, it stays noted that the exchange was broken off:
  /// the person may have signed in again by way of another process, whose token Apple would end with this one.
  private func offer(_ signIn: Kept, of exchange: CodeExchange) async {
    let isTaken = await unkept.persist(with: exchange, after: 1) {
      do throws(AccountStoreError) {
        _ = await self.settle(signIn, of: exchange, as: try await self.record(signIn, of: exchange))
        return .done
      } catch {
        self.note("a sign-in could not be kept", error)
        return .again(.zero)
      }
    }
    guard !isTaken else { return }
    logger.error(
      "a token was not kept: nobody knows it any more",
      ["account.hash": .describing(store.hash(of: signIn.account)), "client": .describing(exchange.client)])
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
  fileprivate static let over = beginAgain(
    "The authorization is over: it was ended before its tokens became known, or since.")
  fileprivate static let notKept = unavailable(
    "Apple took the code, and the account store does not answer yet. Repeat the same request.")
}
