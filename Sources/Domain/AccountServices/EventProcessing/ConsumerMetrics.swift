import AccountEvents
import AccountStore
import EventLoop
import Kafka
import Telemetry

/// What operators of a consumer watch and alarm on. `docs/` names these; renaming one breaks dashboards.
@Loop
final class ConsumerMetrics {
  /// What became of an event.
  enum Outcome {
    case decided(String)
    case superseded(Supersession)
    case repeated, passedOver
  }

  /// So many causes have a metric of their own; all others share one. A consumer that names more than that has no closed
  /// list of them.
  private static let mostCauses = 64

  private let consumer: String
  private let registry: MetricsRegistry
  private let decided: [(outcome: String, counter: Counter)]
  private let superseded: [Supersession: Counter]
  private let repeated, passedOver: Counter
  private var retries: [String: Counter] = [:]
  private let deadLetters: [String: Counter]
  private var waiting: [String: Gauge] = [:]
  private var readErrors: [KafkaError.Code: Counter] = [:]
  private let restated: Counter
  private let missing: Counter
  private let begunAnew: Counter
  private let begunLate: Counter

  nonisolated init(_ consumer: EventConsumer, _ registry: MetricsRegistry) {
    (self.consumer, self.registry) = (consumer.name.text, registry)
    restated = registry.counter(
      "siwa_consumer_restated_total",
      "Records that were said again, as what is true now, since an old one may stand behind them.",
      labels: ["consumer": consumer.name.text])
    missing = registry.counter(
      "siwa_consumer_records_missing_total",
      "Records that Kafka deleted before they were processed. Alarm on any increase: each may be an obligation.",
      labels: ["consumer": consumer.name.text])
    begunAnew = registry.counter(
      "siwa_consumer_partitions_begun_anew_total",
      "Partitions whose offsets began again: the topic was made anew, or has lost its end. Alarm on any increase.",
      labels: ["consumer": consumer.name.text])
    begunLate = registry.counter(
      "siwa_consumer_partitions_begun_late_total",
      "Partitions without a committed offset whose first records were gone. Alarm, but for a consumer that is new.",
      labels: ["consumer": consumer.name.text])
    func counter(of outcome: String) -> Counter {
      registry.counter(
        "siwa_consumer_events_total", "Events that are done, by what was done.",
        labels: ["consumer": consumer.name.text, "outcome": outcome])
    }
    decided = consumer.outcomes.map { ($0, counter(of: $0)) }
    superseded = Dictionary(
      uniqueKeysWithValues: Supersession.allCases.map { ($0, counter(of: "superseded-\($0.rawValue)")) })
    (repeated, passedOver) = (counter(of: "repeated"), counter(of: "passed-over"))
    // All from the start: the first increase of a series that was not there before is none to who watches.
    deadLetters = Dictionary(
      uniqueKeysWithValues: Self.deadLetterCauses.map { cause in
        let counter = registry.counter(
          "siwa_consumer_dead_letters_total",
          "Events put aside, by cause. Alarm on any increase: each is an obligation.",
          labels: ["consumer": consumer.name.text, "cause": cause])
        return (cause, counter)
      })
  }

  /// The cause of what was tried until its topic was about to forget it, whatever it has failed for.
  nonisolated static let givenUp = "given-up"
  /// Why events are put aside. What is not among these counts as `other`: letters and the log name it.
  private nonisolated static let deadLetterCauses = [
    "ahead-of-time", "malformed-json", "malformed-member", "unknown-type", "topic-begun-anew", "no-policy",
    "superseded-while-partial", "unverified", givenUp, "other",
  ]

  func count(_ outcome: Outcome) {
    switch outcome {
    case .decided(let name): decided.first { $0.outcome == name }?.counter.increment()
    case .superseded(let supersession): superseded[supersession]?.increment()
    case .repeated: repeated.increment()
    case .passedOver: passedOver.increment()
    }
  }

  func countRestated() { restated.increment() }

  func countMissing(_ records: Int) { missing.increment(by: UInt64(records)) }

  func countBegunAnew() { begunAnew.increment() }

  func countBegunLate() { begunLate.increment() }

  func countReadError(_ code: KafkaError.Code) {
    let counter =
      readErrors[code]
      ?? registry.counter(
        "siwa_consumer_read_errors_total", "Errors of reading, by what Kafka said; reading went on.",
        labels: ["consumer": consumer, "code": code.rawValue])
    readErrors[code] = counter
    counter.increment()
  }

  func countRetry(_ cause: String) {
    metric(of: cause, among: &retries) { labels in
      registry.counter(
        "siwa_consumer_retries_total", "Attempts at events that are made again, by why they failed.", labels: labels)
    }.increment()
  }

  func countDeadLetter(_ cause: String) {
    (deadLetters[cause] ?? deadLetters["other"])?.increment()
  }

  /// So many events more wait for their next attempt because of `cause`.
  func countWaiting(_ cause: String, _ change: Double) {
    metric(of: cause, among: &waiting) { labels in
      registry.gauge(
        "siwa_consumer_retrying", "Events that wait for their next attempt, by why the last one failed.", labels: labels
      )
    }.add(change)
  }

  /// The metric of a cause. One that has come when there were too many stays `other`.
  private func metric<Metric>(
    of cause: String, among known: inout [String: Metric], make: (KeyValuePairs<String, String>) -> Metric
  ) -> Metric {
    let cause = known[cause] == nil && known.count >= Self.mostCauses ? "other" : cause
    let metric = known[cause] ?? make(["consumer": consumer, "cause": cause])
    known[cause] = metric
    return metric
  }

  /// Adds what is asked for when the metrics are rendered, which happens on the loop.
  nonisolated func observe(_ processor: EventProcessor, _ registry: MetricsRegistry) {
    func gauge(_ name: String, _ help: String, _ value: @escaping @Loop @Sendable (EventProcessor) -> Double) {
      registry.gauge("siwa_consumer_\(name)", help, labels: ["consumer": consumer]) { [weak processor] in
        Loop.assumeIsolated { processor.map(value) ?? 0 }
      }
    }
    gauge(
      "partitions", "Partitions that are ours. Alarm where their sum over the group is below what its topics have."
    ) { Double($0.partitions.values.filter { !$0.isForeign }.count) }
    gauge("lag", "Records on the topics that are not done yet, as far as is known.") { Double($0.lag) }
    gauge("oldest_unprocessed_seconds", "How old the oldest record is that was read and is not done; 0 without one.") {
      $0.ageOfOldest
    }
    gauge("in_flight", "Records that were read and are not done.") { Double($0.room.held) }
    gauge("waiting", "Of these, records that wait for their next attempt, or behind one of their account that does.") {
      Double($0.room.backingOff)
    }
    gauge("partitions_paused", "Partitions of which nothing more is read until more of what was read is done.") {
      Double($0.room.paused)
    }
    gauge(
      "commits_failing_seconds", "For how long commits have failed; 0 where the last succeeded, or none is to be made."
    ) {
      $0.uncommitted
    }
    gauge("announcements_waiting", "Events of which something is to be announced that the log has not taken yet.") {
      Double($0.announcing)
    }
    gauge("attempts", "How often the event has failed that has failed most often and is not done.") {
      Double($0.lanes.first.map(\.attempts.count).max() ?? 0)
    }
  }
}

extension EventProcessor {
  /// How many records lie before what is done, in all partitions.
  var lag: Int64 {
    partitions.values.reduce(0) { sum, work in
      // What is fetched alone would say that there is nothing to read where nothing may be.
      let extent = work.fetching.extent
      let ends = [source?.knownEnd(of: work.place), extent?.end].compactMap(\.self)
      // Where nobody can say what is committed, nobody knows the lag.
      let first = work.isUnknown ? nil : work.continuity.next ?? extent?.first
      guard let end = ends.max(), let offset = work.progress.offset ?? work.committed ?? first else { return sum }
      return sum + max(0, end - offset)
    }
  }

  /// In seconds.
  var uncommitted: Double { commitHealth.failingSince.map { (agenda.now - $0) / .seconds(1) } ?? 0 }

  /// In seconds.
  var ageOfOldest: Double {
    guard let oldest = partitions.values.compactMap(\.progress.oldest).min() else { return 0 }
    return Double(max(0, now().milliseconds - oldest)) / 1000
  }
}
