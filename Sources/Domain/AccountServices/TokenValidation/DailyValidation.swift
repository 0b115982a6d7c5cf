import AccountEvents
package import AccountStore
package import EventLoop
package import Telemetry

/// Validates every refresh token once a day, in one of all processes that share the store.
@Loop
package final class DailyValidation {
  /// How often it is counted what there is to do.
  private static let census = Duration.seconds(300)

  private let store: any AccountStore
  private let validation: Validation
  private let window: Duration
  private let holder: String
  private let clock: AskingClock
  private let metrics: ValidationMetrics
  private let logger: Logger
  private var watch: LeaseWatch
  /// When it was counted last, and how late tokens were then.
  private var counted: (at: MonotonicTime, behind: Duration)
  private let waiting: Waiting

  /// A process with a name that no other has. The tokens of a day are spread over `window`.
  package init(
    _ store: any AccountStore, _ validation: Validation, window: Duration, holder: String, clock: AskingClock,
    metrics: ValidationMetrics, logger: Logger
  ) {
    (self.store, self.validation, self.window, self.holder) = (store, validation, window, holder)
    (self.clock, self.metrics, self.logger) = (clock, metrics, logger)
    watch = LeaseWatch(holder)
    counted = (clock.now(), .zero)
    waiting = Waiting(clock)
  }

  /// Validates until `end` is called.
  package func run() async {
    while !waiting.isEnding {
      do throws(AccountStoreError) {
        if let lease = try await take() { await lead(lease) }
      } catch {
        note(error)
      }
      await rest(Lease.pulse)
    }
    await validation.finish()
  }

  /// Takes nothing new; what is under way comes to its end, and another process goes on at once.
  package func end() {
    waiting.end()
    validation.end()
  }

  private func take() async throws(AccountStoreError) -> Lease? {
    let seen = try await store.lease(Lease.validation)
    guard watch.mayTake(seen, at: clock.now()) else { return nil }
    let lease = Lease(Lease.validation, of: holder, at: clock.wall())
    return try await store.take(lease, after: seen) ? lease : nil
  }

  private func lead(_ lease: Lease) async {
    metrics.leads.set(1)
    defer { metrics.leaseIsOver() }
    logger.info("this process validates refresh tokens now", ["lease.holder": .string(holder)])
    var nextCensus = clock.now()
    counted = (nextCensus, .zero)
    while !waiting.isEnding {
      if clock.now() >= nextCensus {
        await count()
        nextCensus = clock.now() + Self.census
      }
      switch await validation.shift(under: lease, until: nextCensus) {
      case .timeOver: continue
      case .nothingDue, .appleFails: await rest(Lease.pulse)
      case .store(let error):
        note(error)
        await rest(Lease.pulse)
      case .leaseLost: return logger.notice("another process validates refresh tokens now")
      case .ended: break
      }
    }
    await validation.finish()
    do throws(AccountStoreError) { try await store.giveUp(lease) } catch { note(error) }
  }

  /// Spreads what there is over the day. What was late to be validated again by more than the window leaves of a day is
  /// made up for as fast as is agreed.
  private func count() async {
    do throws(AccountStoreError) {
      let now = clock.wall()
      let census = try await store.validationCensus(at: now)
      let behind = census.dueSince.map { max(now - $0, .zero) } ?? .zero
      metrics.due.set(Double(census.due))
      counted = (clock.now(), behind)
      tell(behind)
      let isLate = behind > max(TokenValidation.interval - window, .seconds(3600))
      validation.spread(census.tokens, over: isLate ? nil : window)
    } catch {
      note(error)
      // Nobody knows: who alarms on tokens that are late is to hear of it.
      tell(counted.behind + (clock.now() - counted.at))
    }
  }

  private func tell(_ behind: Duration) { metrics.behind.set(Double(behind.wholeNanoseconds) / 1e9) }

  private func rest(_ duration: Duration) async { await waiting.nap(until: clock.now() + duration) }

  private func note(_ error: AccountStoreError) {
    logger.error(
      "refresh tokens cannot be validated: the account store does not answer",
      ["store.error": .string(error.code.rawValue), "store.detail": .string(error.detail)])
  }
}
