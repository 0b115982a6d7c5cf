import AccountEvents
import AccountStore
import ConsumerSupport
import EventLoop
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import AccountServices
@testable import AppleID

/// A clock that nobody waits for: whoever sleeps comes to that moment, a little late where a test wants it.
final class VirtualClock: Sendable {
  /// The wall clock's time when it began.
  static let start = Timestamp.sample(1_800_000_000_000)
  private static let origin = MonotonicTime(nanoseconds: 1_000_000_000)

  private let elapsed = Mutex(Duration.zero)
  private let lateness: @Sendable () -> Duration

  init(lateness: @escaping @Sendable () -> Duration) { self.lateness = lateness }

  /// How much time has passed.
  var passed: Duration { elapsed.withLock { $0 } }
  var time: MonotonicTime { Self.origin + passed }
  var wall: Timestamp { Self.start + passed }

  func advance(by duration: Duration) { elapsed.withLock { $0 += duration } }

  private func sleep(until end: MonotonicTime) {
    let late = lateness()
    elapsed.withLock { $0 = max($0, end - Self.origin + late) }
  }

  var clock: AskingClock {
    AskingClock(
      wall: { self.wall }, now: { self.time },
      sleep: { time in
        await Loop.nextTurn()
        try Task.checkCancellation()
        self.sleep(until: time)
      })
  }
}

/// Validations against an Apple that says what a test wants, on a real store and a virtual clock.
@Loop
final class ValidationRig {
  nonisolated static let app = ValidationRig.client("com.example.app")
  nonisolated static let web = ValidationRig.client("com.example.web")

  let clock: VirtualClock
  let store: WatchedStore
  let captured = CapturedLog()
  let registry = MetricsRegistry()
  let metrics: ValidationMetrics
  /// What Apple says of a token.
  var answer: @Loop (_ token: String, _ client: ClientID) throws(AppleTokenError) -> Grant = { _, _ in
    ValidationRig.good
  }
  /// Called as soon as Apple has answered.
  var afterAnswer: @Loop () async throws -> Void = {}
  /// Which tokens it was asked about, and when.
  private(set) var asked: [(token: String, at: Timestamp)] = []
  private let files: StoreOfTests

  nonisolated static func client(_ text: String) -> ClientID {
    guard let client = ClientID(text) else { preconditionFailure("a sample that is not valid") }
    return client
  }

  nonisolated static let good: Grant = {
    guard let token = AccessToken("a.token") else { preconditionFailure("a sample that is not valid") }
    return .granted(GrantedTokens(accessToken: token, lifetime: .seconds(3600), refreshToken: nil, identityToken: nil))
  }()

  nonisolated static func account(_ number: Int) -> Account { AccountEvent.sample(1, of: "person-\(number)").account }

  /// Runs `body`. Whatever the test was, no token and nobody's name is in the log.
  static func run(
    lateness: @escaping @Sendable () -> Duration = { .zero }, _ body: @Loop (ValidationRig) async throws -> Void
  ) async throws {
    let files = StoreOfTests()
    let rig = ValidationRig(files, WatchedStore(try await files.open()), VirtualClock(lateness: lateness))
    try await body(rig)
    await rig.store.close()
    let log = rig.captured.lines.joined()
    #expect(!log.contains("person-") && !log.contains("secret-of"), "in the log")
  }

  private init(_ files: StoreOfTests, _ store: WatchedStore, _ clock: VirtualClock) {
    (self.files, self.store, self.clock) = (files, store, clock)
    metrics = ValidationMetrics(registry)
  }

  /// The same store, as another process has it.
  func openAgain() async throws -> WatchedStore { WatchedStore(try await files.open()) }

  /// Records a sign-in of each person, by itself two days before the clock's begin.
  func signIn(
    _ numbers: ClosedRange<Int>, to client: ClientID = app, ago: Duration = .seconds(2 * 86_400)
  ) async throws {
    for number in numbers {
      let token = NewToken(
        kind: .refresh, client: client, value: try #require(SecretToken("secret-of-\(number).\(client)")))
      _ = try await store.recordSignIn(Self.account(number), at: VirtualClock.start - ago, tokens: [token])
    }
  }

  func validation(
    _ store: WatchedStore? = nil, rate: Int = 50, believesAll: Bool = false, patience: Int? = nil
  ) -> Validation {
    Validation(
      store ?? self.store,
      apple: { token, client throws(AppleTokenError) in
        self.asked.append((token.text, self.clock.wall))
        let result = Result { () throws(AppleTokenError) in try self.answer(token.text, client) }
        do { try await self.afterAnswer() } catch { throw AppleTokenError(.cancelled, "the test fails") }
        return try result.get()
      }, rate: rate, concurrency: 64, clients: { _, client in [client] }, believesAll: believesAll, patience: patience,
      clock: clock.clock, random: { 0.5 }, metrics: metrics, logger: captured.logger(format: .text))
  }

  func daily(_ validation: Validation, _ store: WatchedStore? = nil, as holder: String) -> DailyValidation {
    DailyValidation(
      store ?? self.store, validation, window: .seconds(20 * 3600), holder: holder, clock: clock.clock,
      metrics: metrics, logger: captured.logger(format: .text))
  }

  /// Validates what is due, as one process does that has the lease, and waits until all of it is written.
  func validate(_ validation: Validation) async throws -> Validation.Ending {
    let ending = try await shift(validation)
    await validation.finish()
    return ending
  }

  /// The same, by a process that goes on.
  func shift(_ validation: Validation) async throws -> Validation.Ending {
    let lease = Lease(Lease.validation, of: "rig", at: clock.wall)
    let seen = try await store.lease(Lease.validation)
    if seen?.holder != "rig" { try #require(try await store.take(lease, after: seen)) }
    return await validation.shift(under: lease, until: .distantFuture)
  }

  /// How often each token was asked about.
  var counts: [String: Int] { asked.reduce(into: [:]) { $0[$1.token, default: 0] += 1 } }

  /// When each token was asked about.
  var times: [String: [Timestamp]] { Dictionary(grouping: asked, by: \.token).mapValues { $0.map(\.at) } }

  func metric(_ name: String) -> String? {
    String(decoding: registry.render(), as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name + " ") }
      .map { String($0.dropFirst(name.count + 1)) }
  }
}

extension Validation.Ending {
  var isNothingDue: Bool { if case .nothingDue = self { true } else { false } }
  var isLeaseLost: Bool { if case .leaseLost = self { true } else { false } }
  var isAppleFails: Bool { if case .appleFails = self { true } else { false } }
}
