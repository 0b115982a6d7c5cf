package import AccountEvents
package import AccountStore
import AppleID
package import EventLoop
package import Telemetry

/// Publishes the events of our own that wait in the account store: those of one account one after the other, in their order.
///
/// An event leaves the store once every in-sync replica of Kafka's has it. So whatever is killed when, it is published; twice
/// where that was between the two, with the same id, by which consumers know it. Of several processes on one store one
/// publishes at a time, and another one takes over where it is gone.
@Loop
package final class OutboxPublisher {
  /// How long Kafka may take for a record.
  package nonisolated static let logDeadline = Duration.seconds(10)
  /// How long nobody else publishes: longer than a page may take.
  private static let lease = Duration.seconds(60)
  private static let pulse = Duration.seconds(1)
  /// What came of a turn so far.
  private struct Turn {
    /// Why the first was not taken that was not.
    var refusal: EventLogError?
    /// The accounts of which one was not.
    var stuck: Set<[UInt8]> = []
    /// What does not open.
    var damaged: [EventID] = []
  }

  /// How many events are taken at once.
  private static let page = 256
  private static let pace = RetryPace(first: .milliseconds(500), longest: .seconds(30))

  private let store: any AccountStore
  private let log: any EventLog
  private let holder: String
  private let random: @Sendable () -> Double
  private let now: @Sendable () -> Timestamp
  private let metrics: OutboxMetrics
  private let logger: Logger
  private var state = OutboxState(waiting: 0, oldest: nil)
  /// Why the last attempt failed, and how many have by now.
  private var failure: (attempts: Int, cause: String)?
  /// What did not open last time.
  private var damaged: Set<EventID> = []
  private var nap: Task<Void, Never>?
  private var turn: Task<Duration, Never>?
  private var isAwoken = false
  private var isEnding = false

  /// A publisher of what waits in `store`. `holder` tells this process from all others, and `random` is from 0 to 1.
  package init(
    _ store: any AccountStore, _ log: any EventLog, holder: String, random: @escaping @Sendable () -> Double,
    now: @escaping @Sendable () -> Timestamp, registry: MetricsRegistry, logger: Logger
  ) {
    (self.store, self.log, self.holder, self.random, self.now) = (store, log, holder, random, now)
    (metrics, self.logger) = (OutboxMetrics(registry), logger)
  }

  /// Publishes until the task is cancelled, or `drain` is called.
  package func run() async {
    while !isEnding, !Task.isCancelled {
      // What was begun comes to its end whoever is cancelled meanwhile.
      let turn = Task(executorPreference: Loop.executor) { await self.publish() }
      self.turn = turn
      await rest(for: await turn.value)
    }
  }

  /// Something was written into the outbox. While Kafka is away, that changes nothing.
  package func wake() {
    guard failure == nil else { return }
    isAwoken = true
    nap?.cancel()
  }

  /// Publishes what it can, and lets others go on. What is left, stays in the store.
  package func drain() async {
    isEnding = true
    nap?.cancel()
    _ = await turn?.value
    if failure == nil { _ = await publish() }
    do throws(AccountStoreError) { try await store.leaveOutbox(holder) } catch {
      // Others wait until the lease has run out.
      logger.warning("the outbox could not be left", ["store.error": .string(error.code.rawValue)])
    }
    await log.close(within: .zero)
  }

  /// How it is, for `/readyz`: sign-ins and deletions go on while Kafka is away.
  package func readiness() async -> Readiness.State {
    if let failure {
      return .replaced(cause: "\(failure.cause); \(words)")
    }
    do throws(EventLogError) {
      try await log.check()
      return .ready
    } catch {
      return .replaced(cause: "\(error.reason): \(error.detail); \(words)")
    }
  }

  private var words: String {
    state.oldest.map { "\(state.waiting) events wait in the account store, the first since \($0)" }
      ?? "no event waits in the account store"
  }

  // MARK: A turn

  /// Publishes what waits, page by page. What Kafka does not take stays, and so does what comes after it of its account;
  /// all others go on. Returns how long to rest.
  package func publish() async -> Duration {
    do throws(AccountStoreError) {
      note(try await store.outbox())
      guard state.waiting > 0 else {
        failure = nil
        note(damaged: [])
        return Self.pulse
      }
      var (turn, place) = (Turn(), nil as OutboxPage.Place?)
      repeat {
        let time = now()
        let page = try await store.takeOutbox(
          by: holder, at: time, until: time + Self.lease, after: place, limit: Self.page)
        guard let page else { return Self.pulse }
        turn.damaged += page.damaged
        let published = await publish(page.records, &turn)
        if !published.isEmpty {
          try await store.removeFromOutbox(published)
          metrics.published.increment(by: UInt64(published.count))
        }
        place = page.end
        // Where Kafka is away altogether, there is no use in trying all the others.
        if turn.refusal != nil, published.isEmpty {
          let isLogThere = await isLogThere()
          if isEnding || !isLogThere { place = nil }
        }
      } while place != nil
      note(damaged: turn.damaged)
      note(try await store.outbox())
      guard let refusal = turn.refusal else {
        failure = nil
        return Self.pulse
      }
      let metadata: LogMetadata = [
        "kafka.reason": .string(refusal.reason), "kafka.detail": .string(refusal.detail),
        "outbox.waiting": .integer(state.waiting),
      ]
      if refusal.outcome == .refused {
        logger.error("Kafka refuses events of our own: they wait in the account store", metadata)
      } else {
        logger.warning("events of our own could not be published: they wait in the account store", metadata)
      }
      return failed("\(refusal.reason): \(refusal.detail)")
    } catch {
      logger.warning(
        "the outbox cannot be read",
        ["store.error": .string(error.code.rawValue), "store.detail": .string(error.detail)])
      return failed("the account store: \(error.code.rawValue)")
    }
  }

  private func isLogThere() async -> Bool {
    do throws(EventLogError) {
      try await log.check()
      return true
    } catch {
      return false
    }
  }

  /// Says which events do not open, when that changes.
  private func note(damaged: [EventID]) {
    metrics.damaged.set(Double(damaged.count))
    let isNews = Set(damaged) != self.damaged
    self.damaged = Set(damaged)
    guard isNews, let first = damaged.first else { return }
    logger.error(
      "events of our own do not open, and are not published: ask siwa store integrity",
      ["events": .integer(damaged.count), "event.id": .describing(first)])
  }

  private func failed(_ cause: String) -> Duration {
    metrics.failed.increment()
    let attempts = (failure?.attempts ?? 0) + 1
    failure = (attempts, cause)
    return Self.pace.pause(after: attempts, random: random())
  }

  private func note(_ state: OutboxState) {
    self.state = state
    metrics.waiting.set(Double(state.waiting))
    let age = state.oldest.map { now() - $0 } ?? .zero
    metrics.oldest.set(max(0, Double(age.components.seconds)))
  }

  /// Publishes the events of different accounts side by side. Behind one that Kafka did not take the others of its account
  /// wait, until the next turn. Returns those that are there.
  private func publish(_ records: [OutboxRecord], _ turn: inout Turn) async -> [EventID] {
    var lanes: [[UInt8]: [OutboxRecord]] = [:]
    for record in records {
      let key = record.record.key ?? []
      if !turn.stuck.contains(key) { lanes[key, default: []].append(record) }
    }
    let results = await withTaskGroup(of: (key: [UInt8], published: [EventID], refusal: EventLogError?).self) { group in
      for (key, lane) in lanes {
        group.addTask(executorPreference: Loop.executor) {
          let (published, refusal) = await self.publishInOrder(lane)
          return (key, published, refusal)
        }
      }
      var results: [(key: [UInt8], published: [EventID], refusal: EventLogError?)] = []
      for await result in group { results.append(result) }
      return results
    }
    for case (let key, _, let refusal?) in results {
      turn.refusal = turn.refusal ?? refusal
      turn.stuck.insert(key)
    }
    return results.flatMap(\.published)
  }

  private func publishInOrder(_ lane: [OutboxRecord]) async -> (published: [EventID], refusal: EventLogError?) {
    var published: [EventID] = []
    for record in lane {
      let result = await withCheckedContinuation { continuation in
        log.append(aloneIfRefused: record.record) { continuation.resume(returning: $0) }
      }
      if case .failure(let error) = result { return (published, error) }
      published.append(record.id)
    }
    return (published, nil)
  }

  /// Sleeps, unless something was written meanwhile.
  private func rest(for pause: Duration) async {
    let wasAwoken = isAwoken
    isAwoken = false
    if wasAwoken && failure == nil || isEnding || Task.isCancelled { return }
    let nap = Task(executorPreference: Loop.executor) { await Self.sleep(for: pause) }
    self.nap = nap
    await withTaskCancellationHandler {
      await nap.value
    } onCancel: {
      nap.cancel()
    }
    self.nap = nil
  }

  private static func sleep(for duration: Duration) async {
    do { try await Loop.sleep(for: duration) } catch { return }  // something was written, or the program ends
  }
}

/// What operators watch of the outbox. docs/sign-in.md names it; renaming it breaks dashboards.
struct OutboxMetrics {
  let waiting: Gauge
  let oldest: Gauge
  let damaged: Gauge
  let published: Counter
  let failed: Counter

  init(_ registry: MetricsRegistry) {
    waiting = registry.gauge(
      "siwa_outbox_waiting",
      "Events of our own that wait in the account store to be published; the same in every process.")
    oldest = registry.gauge(
      "siwa_outbox_oldest_seconds", "How long the first of them has waited. Alarm when it keeps growing.")
    damaged = registry.gauge(
      "siwa_outbox_damaged", "Events of our own that do not open, and are not published. Alarm on it.")
    published = registry.counter("siwa_outbox_published_total", "Events of our own that Kafka has acknowledged.")
    failed = registry.counter("siwa_outbox_failures_total", "Attempts after which events of our own waited on.")
  }
}
