import AccountEvents
import AccountStore
import AppleID
import Cryptography
import EventLoop
import Telemetry

/// Tokens that Apple has granted and the store does not have: what is done about them behind a request's answer.
///
/// To revoke a token at Apple ends the person's whole authorization for the app, and Apple says so as if the person had
/// withdrawn consent, which ends that of all apps that share it. So none is revoked but where it is known whose it is, that no
/// living one of that person and those apps is held, and that no sign-in of theirs is under way; and it is noted first that it
/// is our doing. A sign-in that begins after that counts as later. Where it begins while Apple is asked, Apple may end it with
/// the others, and tells so.
@Loop
final class UnkeptTokens {
  /// How long a token may wait for the store, or to be revoked.
  private static let patience = Duration.seconds(3600)
  private static let pace = RetryPace(first: .seconds(1), longest: .seconds(30))

  /// What came of an attempt.
  enum Attempt {
    case done
    /// It is to be tried again, no sooner than after that.
    case again(Duration)
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
  private let groups: ConsentGroups
  private let metrics: AccountsMetrics
  private let logger: Logger
  private let now: @Sendable () -> Timestamp
  private let random: @Sendable () -> Double
  private var held: [SHA256Digest: Held] = [:]
  private var lastHeld = 0
  private var naps: [SHA256Digest: Task<Void, Never>] = [:]
  private var isEnding = false

  /// None yet; `groups` say which apps share consent, and `random` is from 0 to 1.
  init(
    _ store: any AccountStore, _ endpoints: AppleTokenEndpoints, _ groups: ConsentGroups, metrics: AccountsMetrics,
    logger: Logger, now: @escaping @Sendable () -> Timestamp, random: @escaping @Sendable () -> Double
  ) {
    (self.store, self.endpoints, self.groups) = (store, endpoints, groups)
    (self.metrics, self.logger, self.now, self.random) = (metrics, logger, now, random)
  }

  /// Of how many requests something is left to be done.
  var count: Int { held.count }

  /// What a request asked whose outcome is decided by what is left of it to be done; nil where none is.
  func contentDecidedLater(_ exchange: CodeExchange) -> SHA256Digest? {
    held[exchange.request].flatMap { $0.decides ? $0.content : nil }
  }

  /// Has whoever waits for a moment try now, once more.
  func hurry() {
    isEnding = true
    for nap in naps.values { nap.cancel() }
  }

  /// Waits until nothing is left to be done, or could not be.
  func drain() async {
    hurry()
    while let held = held.first?.value { await held.task.value }
  }

  /// Goes on with `work` behind the request's answer. What takes the place of other work of the request follows from that,
  /// and is its last step.
  func hold(_ exchange: CodeExchange, decides: Bool, _ work: @escaping @Loop () async -> Void) {
    lastHeld += 1
    let number = lastHeld
    held[exchange.request] = Held(
      number: number, content: exchange.content, decides: decides,
      task: Task(executorPreference: Loop.executor) { await self.carry(exchange, number, through: work) })
    metrics.waiting.set(Double(held.count))
  }

  private func carry(_ exchange: CodeExchange, _ number: Int, through work: @Loop () async -> Void) async {
    await work()
    guard held[exchange.request]?.number == number else { return }
    held[exchange.request] = nil
    metrics.waiting.set(Double(held.count))
  }

  /// Tries until it is done, the program ends or an hour is over: whether it is. `attempts` have gone before.
  func persist(with exchange: CodeExchange, after attempts: Int, _ attempt: @Loop () async -> Attempt) async -> Bool {
    let end = MonotonicTime.now + Self.patience
    var (attempts, wait) = (attempts, Duration.zero)
    repeat {
      if attempts > 0 { await nap(for: max(Self.pace.pause(after: attempts, random: random()), wait), of: exchange) }
      attempts += 1
      switch await attempt() {
      case .done: return true
      case .again(let pause): wait = pause
      }
    } while !isEnding && MonotonicTime.now < end
    return false
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

  // MARK: Revocation

  /// Revokes a token that is kept for nobody, behind the request's answer; not where a living one of the person and of the
  /// apps that share consent is held, whose authorization Apple would end with it, and which ends this one in time. While the
  /// store cannot say that, or a sign-in of theirs is under way, it waits.
  func revokeUnlessCovered(_ refresh: RefreshToken, of account: Account, _ exchange: CodeExchange) {
    hold(exchange, decides: false) {
      let isDone = await self.persist(with: exchange, after: 0) { await self.revoke(refresh, of: account, exchange) }
      guard !isDone else { return }
      self.logger.error(
        "a token that is not kept was not revoked",
        ["account.hash": .describing(self.store.hash(of: account)), "client": .describing(exchange.client)])
      self.metrics.unresolved.increment()
    }
  }

  private func revoke(_ refresh: RefreshToken, of account: Account, _ exchange: CodeExchange) async -> Attempt {
    do throws(AccountStoreError) {
      if try await isCovered(account, exchange.client) { return .done }
      if try await store.isSignInUnderWay(of: account, at: now()) { return .again(.milliseconds(500)) }
      try await store.noteOwnRevocation(of: account, for: exchange.client, at: now())
    } catch {
      note("the store does not answer: a token that is not kept is not revoked yet", error)
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
    logger.notice("a token that is not kept was revoked", ["client": .describing(exchange.client)])
    return .done
  }

  /// Whether a living token is held that Apple would end with one of this app's.
  private func isCovered(_ account: Account, _ client: ClientID) async throws(AccountStoreError) -> Bool {
    guard case .known(let profile) = try await store.knowledge(of: store.id(of: account)) else { return false }
    let sharing = groups.clients(of: account.team, sharing: client)
    return profile.signIns.contains { sharing?.contains($0.client) ?? true }
  }

  private func note(_ message: StaticString, _ error: AccountStoreError) {
    logger.error(message, ["store.error": .string(error.code.rawValue), "store.detail": .string(error.detail)])
  }
}
