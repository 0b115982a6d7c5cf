package import AccountEvents
package import AccountStore
package import AppleID
import Cryptography
package import EventLoop
package import Telemetry

/// Validates refresh tokens at Apple: those that the store gives out, at a pace, and has it write down what was found.
///
/// The store notes that a token was given out before Apple is asked: whatever is killed when, none is asked about twice in
/// a day. Only `invalid_grant` says that a token is over, and of an app with many tokens only once Apple has taken one of
/// them: else they are hardly the app's. `invalid_client` is a fault of ours: then the app is left alone, and an operator
/// told. Where Apple throttles or cannot be reached, it is asked more slowly; and what it leaves in doubt changes nothing.
@Loop
package final class Validation {
  /// Asks Apple about a token.
  package typealias Apple = @Loop @Sendable (RefreshToken, ClientID) async throws(AppleTokenError) -> Grant

  /// How far it is.
  package struct Progress: Sendable, Hashable {
    /// Tokens that are good, that are not, of which nobody knows, and that are due as before.
    package fileprivate(set) var good = 0, invalid = 0, doubtful = 0, notAsked = 0
    /// Authorizations that are over, and wait in the outbox to be told of.
    package fileprivate(set) var published = 0
    /// Tokens that do not open.
    package fileprivate(set) var damaged = 0
    /// Of how many tokens it is known what came of them.
    package var done: Int { good + invalid + doubtful + damaged }
  }

  /// Why a shift is over.
  package enum Ending: Sendable {
    /// Nothing is due.
    case nothingDue
    /// Its time is over.
    case timeOver
    /// It was told to end.
    case ended
    /// Another process does it now.
    case leaseLost
    /// Apple has answered nothing for a while.
    case appleFails
    /// The store fails.
    case store(AccountStoreError)
  }

  /// Tokens are given out for so long at once: what is killed leaves no more of them unasked for a day.
  private static let stride = Duration.milliseconds(250)
  private static let mostAtOnce = 128
  /// A token that has its turn no sooner is given back.
  private static let longestHold = Duration.seconds(1)
  /// So many answers may wait for the store.
  private static let mostWaiting = 1024
  private static let page = 256
  /// How long an app is left alone that Apple does not accept.
  private static let stop = Duration.seconds(900)
  private static let storePause = (first: Duration.seconds(1), longest: Duration.seconds(30))

  private let store: any AccountStore
  private let apple: Apple
  private let clients: @Sendable (Account, ClientID) -> Set<ClientID>?
  private let concurrency: Int
  private let believesAll: Bool
  private let patience: Int?
  private let clock: AskingClock
  private let random: @Sendable () -> Double
  private let metrics: ValidationMetrics
  private let logger: Logger

  /// When Apple may be asked next.
  private(set) var pace: ApplePace
  /// How far it is.
  package private(set) var progress = Progress()
  /// Called whenever that has changed.
  package var tell: @Loop (Progress) -> Void = { _ in }
  private var stops: [ClientID: MonotonicTime] = [:]
  private var apps: [ClientID: AppTokens] = [:]
  private var answers: [TokenValidation] = []
  private var inFlight = 0
  private var isFlushing = false
  private let waiting: Waiting

  /// A validation of `rate` requests a second, so many at once.
  ///
  /// - `clients`: the apps that share consent with a token's; nil of an app that has gone to another team, with whose key
  ///   Apple knows nothing of the tokens of before.
  /// - `believesAll`: also that all tokens of an app are invalid.
  /// - `patience`: after so many failures of Apple's in a row a shift ends; nil is never.
  package init(
    _ store: any AccountStore, apple: @escaping Apple, rate: Int, concurrency: Int,
    clients: @escaping @Sendable (Account, ClientID) -> Set<ClientID>?, believesAll: Bool = false, patience: Int? = nil,
    clock: AskingClock, random: @escaping @Sendable () -> Double, metrics: ValidationMetrics, logger: Logger
  ) {
    (self.store, self.apple, self.concurrency, self.clients) = (store, apple, concurrency, clients)
    (self.believesAll, self.patience, self.clock, self.random) = (believesAll, patience, clock, random)
    (self.metrics, self.logger) = (metrics, logger)
    pace = ApplePace(Double(rate), at: clock.now())
    waiting = Waiting(clock)
  }

  /// The apps that are left alone until an operator has put something right.
  package var stopped: Set<ClientID> {
    let now = clock.now()
    return Set(stops.filter { $0.value > now }.keys)
  }

  /// How many tokens it holds: those that Apple is asked about, and those whose answers wait for the store.
  var held: Int { inFlight + answers.count }

  /// Spreads so many tokens over that time; nil is as fast as is agreed.
  func spread(_ tokens: Int, over window: Duration?) {
    pace.spread(tokens, over: window)
    metrics.rate.set(pace.rate)
  }

  /// Takes nothing new: what was given out and not asked about goes back.
  package func end() { waiting.end() }

  /// Returns once nothing is under way any more. What is withheld then is not concluded.
  package func finish() async {
    await waiting.change { self.inFlight > 0 || self.isFlushing }
    await flush()
    for client in apps.keys { giveUp(client) }
  }

  // MARK: A shift

  /// Validates what is due, as long as the lease is held.
  package func shift(under lease: Lease, until limit: MonotonicTime) async -> Ending {
    var renewal = clock.now()
    while !waiting.isEnding {
      if let patience, pace.failures >= patience { return .appleFails }
      let now = clock.now()
      if now >= limit { return .timeOver }
      if held >= Self.mostWaiting || inFlight >= concurrency {
        await waiting.change {
          !self.waiting.isEnding && (self.held >= Self.mostWaiting || self.inFlight >= self.concurrency)
        }
        continue
      }
      let slot = pace.next(at: now)
      let isNear = slot <= now + Self.stride
      guard isNear || now >= renewal else {
        await waiting.nap(until: min(slot, renewal, limit))
        continue
      }
      let count = isNear ? min(max(Int(pace.rate * 0.25), 1), Self.mostAtOnce) : 0
      let stopped = stopped
      metrics.stopped.set(Double(stopped.count))
      metrics.rate.set(pace.rate)
      let claimed: ClaimedTokens?
      do throws(AccountStoreError) {
        claimed = try await store.claimTokens(count, without: stopped, under: lease, at: clock.wall())
      } catch {
        return .store(error)
      }
      guard let claimed else { return .leaseLost }
      renewal = now + Lease.pulse
      note(damaged: claimed.damaged)
      if count > 0, claimed.tokens.isEmpty, claimed.damaged == 0 { return .nothingDue }
      await ask(claimed.tokens)
    }
    return .ended
  }

  private func ask(_ tokens: [DueToken]) async {
    for token in tokens {
      let now = clock.now()
      let slot = pace.next(at: now)
      guard !waiting.isEnding, slot <= now + Self.longestHold, stops[token.client].map({ $0 <= now }) ?? true else {
        giveBack(token)
        continue
      }
      pace.take(at: now, random: random())
      await waiting.nap(until: slot)
      await waiting.change { self.inFlight >= self.concurrency && !self.waiting.isEnding }
      let isLate = clock.wall() - token.claimedAt > TokenValidation.patience
      if waiting.isEnding || isLate { giveBack(token) } else { ask(token) }
    }
    await flush()
  }

  private func giveBack(_ token: DueToken) { answers.append(TokenValidation(of: token, .notAsked)) }

  private func ask(_ token: DueToken) {
    inFlight += 1
    // It goes on where the program ends: Apple may have been asked by then.
    Task(executorPreference: Loop.executor) { await self.carry(token) }
  }

  private func carry(_ token: DueToken) async {
    if let finding = await finding(about: token) { answers.append(TokenValidation(of: token, finding)) }
    inFlight -= 1
    waiting.signal()
    await flush()
  }

  // MARK: Answers

  /// What Apple says of a token; nil where it stays in doubt.
  private func finding(about token: DueToken) async -> TokenValidation.Finding? {
    guard let refresh = RefreshToken(token.value.text) else { return doubt() }
    do throws(AppleTokenError) {
      switch try await apple(refresh, token.client) {
      case .granted:
        pace.succeeded(at: clock.now())
        prove(token.client)
        return .good
      case .invalid:
        pace.succeeded(at: clock.now())
        return await invalid(token)
      }
    } catch {
      return finding(after: error, token.client)
    }
  }

  /// What follows from a token that Apple does not take; nil where that stays in doubt, or is withheld.
  private func invalid(_ token: DueToken) async -> TokenValidation.Finding? {
    guard let ended = clients(token.account, token.client) else { return doubt() }
    let finding: TokenValidation.Finding
    do throws(CryptographyError) {
      finding = .invalid(try .ofFinding(), of: ended)
    } catch {
      logger.error("a token is invalid, and no event can be made of it", ["cause": .describing(error)])
      return doubt()
    }
    if believesAll { return finding }
    if apps[token.client, default: AppTokens()].isToBeCounted { await count(token.client) }
    switch apps[token.client, default: AppTokens()].doesNotTake(TokenValidation(of: token, finding)) {
    case .over: return finding
    case .withheld: return nil
    case .nothing:
      stop(
        token.client,
        "Apple takes no token of this app: are they the app's? Nothing more is concluded until it takes one", [:])
      giveUp(token.client)
      return doubt()
    }
  }

  /// Counts the tokens of an app, once: that takes long where other apps have many.
  private func count(_ client: ClientID) async {
    do throws(AccountStoreError) {
      let tokens = try await store.refreshTokens(of: client, upTo: AppTokens.mostInvalidInARow + 1)
      apps[client, default: AppTokens()].counted(tokens)
    } catch {
      logger.error(
        "nobody knows how many tokens an app has: what is found of it is withheld",
        ["store.error": .string(error.code.rawValue), "store.detail": .string(error.detail)])
    }
  }

  /// Apple takes tokens of the app: those of before that it did not take are over. Of one that was given out a day ago
  /// another process may have found otherwise since.
  private func prove(_ client: ClientID) {
    let withheld = apps[client, default: AppTokens()].takes()
    let yesterday = clock.wall() - TokenValidation.interval
    let concluded = withheld.filter { $0.token.claimedAt > yesterday }
    answers += concluded
    leaveInDoubt(withheld.count - concluded.count)
  }

  /// Concludes nothing from what is withheld: Apple is asked again a day later.
  private func giveUp(_ client: ClientID) {
    guard let tokens = apps[client]?.giveUp(), tokens > 0 else { return }
    logger.error(
      "Apple does not take these tokens of an app, and has taken no other of it meanwhile: nothing is concluded",
      ["apple.client": .describing(client), "tokens": .integer(tokens)])
    leaveInDoubt(tokens)
  }

  private func finding(after error: AppleTokenError, _ client: ClientID) -> TokenValidation.Finding? {
    let words: LogMetadata = [
      "apple.client": .describing(client), "apple.error": .string(error.code.rawValue),
      "apple.detail": .string(error.detail),
    ]
    switch error.code {
    case .invalidClient, .unauthorizedClient, .noKey, .unsigned:
      stop(client, "no token of this app is validated until an operator has put it right", words)
      return .notAsked
    case .throttled, .unreachable, .certificate:
      if pace.failed(at: clock.now(), retryAfter: error.retryAfter) {
        logger.warning("Apple cannot be asked about tokens now: it is asked more slowly", words)
      }
      return .notAsked
    case .interrupted, .deadline, .unavailable, .malformedAnswer, .unexpectedStatus, .cancelled, .malformedRequest,
      .forbidden, .invalidRequest, .invalidGrant, .invalidToken, .unsupportedGrantType, .invalidScope, .unknownError:
      if pace.failed(at: clock.now(), retryAfter: error.retryAfter) {
        logger.warning("Apple leaves in doubt whether a token is good: it is asked more slowly", words)
      }
      return doubt()
    }
  }

  private func doubt() -> TokenValidation.Finding? {
    leaveInDoubt(1)
    return nil
  }

  private func leaveInDoubt(_ tokens: Int) {
    guard tokens > 0 else { return }
    progress.doubtful += tokens
    metrics.outcomes[.doubtful].increment(by: UInt64(tokens))
    tell(progress)
  }

  private func stop(_ client: ClientID, _ message: StaticString, _ words: LogMetadata) {
    let now = clock.now()
    defer { stops[client] = now + Self.stop }
    if let end = stops[client], end > now { return }
    var words = words
    words.set("apple.client", .describing(client))
    logger.error(message, words)
  }

  private func note(damaged: Int) {
    guard damaged > 0 else { return }
    progress.damaged += damaged
    logger.error(
      "tokens do not open, and are not validated: siwa store integrity names their accounts",
      ["tokens": .integer(damaged)])
  }

  // MARK: The store

  /// Has the store write down what is known. Whoever comes while that is under way leaves it to who is at it.
  ///
  /// What the store can never write down keeps nothing else back: what is written at once is halved until that one finding is
  /// alone, and lost.
  private func flush() async {
    guard !isFlushing else { return }
    isFlushing = true
    var (attempts, pause, page) = (0, Self.storePause.first, Self.page)
    while !answers.isEmpty {
      let some = Array(answers.prefix(page))
      do throws(AccountStoreError) {
        let outcomes = try await store.record(some, at: clock.wall())
        answers.removeFirst(some.count)
        (attempts, pause, page) = (0, Self.storePause.first, min(2 * page, Self.page))
        for (validation, outcome) in zip(some, outcomes) { count(validation, outcome) }
        tell(progress)
      } catch {
        logger.error(
          "what Apple says of tokens could not be written down",
          ["store.error": .string(error.code.rawValue), "store.detail": .string(error.detail)])
        if error.concernsSome, some.count > 1 {
          page = some.count / 2
          continue
        }
        attempts += 1
        if error.concernsSome, attempts >= 3 {
          lose(1)
          (attempts, pause) = (0, Self.storePause.first)
        } else if error.code == .closed || (waiting.isEnding && attempts >= 3) {
          lose(answers.count)
        } else {
          await waiting.nap(until: clock.now() + pause)
          pause = min(pause + pause, Self.storePause.longest)
        }
      }
      waiting.signal()
    }
    isFlushing = false
    waiting.signal()
  }

  /// Gives up the first answers, which say nothing of a token that is not asked about again.
  private func lose(_ count: Int) {
    answers.removeFirst(count)
    logger.error("it is lost, and Apple asked again a day later", ["tokens": .integer(count)])
    progress.doubtful += count
    metrics.outcomes[.lost].increment(by: UInt64(count))
    tell(progress)
  }

  private func count(_ validation: TokenValidation, _ outcome: RecordedValidation) {
    switch (validation.finding, outcome) {
    case (.good, _):
      progress.good += 1
      metrics.outcomes[.good].increment()
    case (.notAsked, _):
      progress.notAsked += 1
      metrics.outcomes[.notAsked].increment()
    case (.invalid, _):
      progress.invalid += 1
      metrics.outcomes[.invalid].increment()
    }
    guard outcome == .published else { return }
    progress.published += 1
    metrics.found.increment()
    logger.notice(
      "an authorization is over, and Apple has not told us",
      [
        "account.hash": .describing(store.hash(of: validation.token.account)),
        "apple.client": .describing(validation.token.client),
      ])
  }
}

extension AccountStoreError {
  /// Whether it may be of single rows, and lasts.
  fileprivate var concernsSome: Bool { code == .damaged || code == .sealBroken || code == .failed }
}

extension EventID {
  /// An id of our own, unlike any of Apple's.
  fileprivate static func ofFinding() throws(CryptographyError) -> EventID {
    let id = EventID("credential-\(Base64URL.encode(try SecureRandom.bytes(16)))")
    guard let id else { preconditionFailure("letters, digits, hyphens and underscores") }
    return id
  }
}
