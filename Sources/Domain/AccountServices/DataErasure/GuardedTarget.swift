import AccountStore
import EventLoop
import Telemetry

/// A target behind a guard that keeps one which does not answer from holding up the erasures of all others.
///
/// After some failures in a row to reach it nobody asks it for a while; then one does. And while its calls take long, it has
/// no more than a share of the workers.
@Loop
final class GuardedTarget {
  /// After so many calls in a row without an answer the target is paused; for so long, or as long as it asks for.
  private static let failures = 5
  private static let pace = RetryPace(first: .seconds(1), longest: .seconds(60))
  /// A target is slow once a call has taken so long and goes on.
  private static let slowAfter = Duration.seconds(1)
  /// When somebody comes again who found the target busy.
  private static let pause = Duration.seconds(1)

  let name: String
  let target: any ErasureTarget
  private let share: Int
  private let breaker: CircuitBreaker
  private let clock: @Loop () -> MonotonicTime
  private let paused: Gauge
  private let logger: Logger
  private var isPaused = false
  /// When each call began that goes on.
  private var calls: [Int: MonotonicTime] = [:]
  private var lastCall = 0

  /// A guard in front of `target`. `share` calls go on at once at most while they take long.
  init(
    _ name: String, _ target: any ErasureTarget, share: Int, clock: @escaping @Loop () -> MonotonicTime,
    random: @escaping @Sendable () -> Double, registry: MetricsRegistry, logger: Logger
  ) {
    (self.name, self.target, self.share, self.clock, self.logger) = (name, target, share, clock, logger)
    breaker = CircuitBreaker(name, opensAfter: Self.failures, pace: Self.pace, clock: clock, random: random)
    paused = registry.gauge(
      "siwa_erasure_target_paused",
      "1 while an erasure target is asked for a trial at most, because it did not answer. Alarm where it stays.",
      labels: ["target": name])
  }

  /// Runs `body`, which asks the target, and returns what it does. Throws `.paused` where nobody is to ask now.
  func run<Value: Sendable>(_ body: @Loop () async throws -> Value) async throws -> Value {
    let now = clock()
    if calls.count >= share, let oldest = calls.values.min(), now - oldest >= Self.slowAfter {
      throw ErasureFailure(.paused, "\(calls.count) others wait for its answer", retryAfter: Self.pause)
    }
    lastCall += 1
    let call = lastCall
    calls[call] = now
    defer { calls[call] = nil }
    var failure: (any Error)?
    do {
      let result = try await breaker.run { () async throws -> Result<Value, any Error> in
        do {
          return .success(try await body())
        } catch let error as ErasureFailure where error.isOfTarget {
          failure = error
          throw ConsumerFailure.transient(error.code.rawValue, retryAfter: error.retryAfter ?? .zero)
        } catch let error as AccountStoreError {
          // It says nothing of the target.
          failure = error
          throw ConsumerFailure.waiting(error.code.rawValue, for: .zero)
        } catch {
          return .failure(error)
        }
      }
      if !breaker.isOpen { note(isPaused: false, "") }
      return try result.get()
    } catch let error as ConsumerFailure {
      guard let failure else {
        throw ErasureFailure(.paused, "it has not answered of late", retryAfter: error.retryAfter)
      }
      if let failure = failure as? ErasureFailure { note(isPaused: breaker.isOpen, failure.description) }
      throw failure
    }
  }

  private func note(isPaused: Bool, _ cause: String) {
    guard self.isPaused != isPaused else { return }
    self.isPaused = isPaused
    paused.set(isPaused ? 1 : 0)
    if isPaused {
      logger.error(
        "an erasure target is paused: erasures wait for it, and go on elsewhere",
        ["erasure.target": .string(name), "cause": .string(cause)])
    } else {
      logger.info("an erasure target answers again", ["erasure.target": .string(name)])
    }
  }
}
