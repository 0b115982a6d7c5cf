import AccountEvents
package import EventLoop
package import Telemetry

/// What operators of the audit log watch and alarm on. `docs/` names these; renaming one breaks dashboards.
@Loop
package final class AuditMetrics {
  private enum Kind: String, CaseIterable { case obligation, effect, decision, gap }

  /// How many records of a topic are not read yet.
  var lag: (AuditedTopic) -> Int64 = { _ in 0 }

  private let entries: CounterFamily<Kind>
  private let signatures: CounterFamily<AuditEntry.Obligation.Signature>
  private let gaps: CounterFamily<AuditEntry.Gap.Cause>
  private let repeated, readErrors, signingFailures: Counter
  private let size, witnessedSize: Gauge
  private let witnesses: [String: Counter]
  private let answers: [(status: Int, counter: Counter)]
  private var publishedAt: MonotonicTime?
  private var waitingSince: MonotonicTime?
  /// Since when the disk is given a batch that it has not taken yet.
  private var takingSince: MonotonicTime?

  /// Makes the metrics in `registry`, with one for each of these witnesses.
  package init(_ registry: MetricsRegistry, witnesses names: [String]) {
    entries = registry.counters("siwa_audit_log_entries_total", "Entries that were appended, by kind.", by: "kind")
    signatures = registry.counters(
      "siwa_audit_log_signatures_total",
      "Obligations that were appended, by what was found about Apple's signature. Alarm on any refused or unknown-key.",
      by: "signature")
    gaps = registry.counters(
      "siwa_audit_log_gaps_total",
      "Records that the log has not seen or could not read, by why. Alarm on any increase.", by: "why")
    repeated = registry.counter(
      "siwa_audit_log_repeated_total", "Entries that were not appended, because the log had them already.")
    readErrors = registry.counter("siwa_audit_log_read_errors_total", "Errors of reading; reading went on.")
    signingFailures = registry.counter(
      "siwa_audit_log_signing_failures_total", "Checkpoints that could not be signed. Alarm on any increase.")
    size = registry.gauge("siwa_audit_log_size", "Entries that the published checkpoint covers.")
    witnessedSize = registry.gauge(
      "siwa_audit_log_witnessed_size",
      "Entries that a checkpoint covers which as many witnesses have cosigned as have to.")
    witnesses = Dictionary(
      uniqueKeysWithValues: names.map { name in
        (
          name,
          registry.counter(
            "siwa_audit_log_witness_failures_total", "Requests to a witness that brought no cosignature.",
            labels: ["witness": name])
        )
      })
    answers = [200, 404, 405, 503].map { status in
      (
        status,
        registry.counter(
          "siwa_audit_log_answers_total", "Answers to who reads the log, by status.", labels: ["status": "\(status)"])
      )
    }
    registry.gauge(
      "siwa_audit_log_checkpoint_age_seconds", "How long ago the last checkpoint was published; 0 before the first."
    ) { [weak self] in Loop.assumeIsolated { Self.seconds(since: self?.publishedAt) } }
    registry.gauge(
      "siwa_audit_log_waiting_seconds",
      "How long the oldest of what was read waits for a checkpoint; 0 where all is published. Alarm beyond a minute."
    ) { [weak self] in Loop.assumeIsolated { Self.seconds(since: self?.oldest) } }
    for topic in AuditedTopic.all {
      registry.gauge(
        "siwa_audit_log_lag", "Records on the topic that were not read yet, as far as is known.",
        labels: ["topic": topic.topic.name]
      ) { [weak self] in Loop.assumeIsolated { Double(self?.lag(topic) ?? 0) } }
    }
  }

  private var oldest: MonotonicTime? { [waitingSince, takingSince].compactMap(\.self).min() }

  /// How long the oldest of what was read waits for a checkpoint; zero where all is published.
  package var waiting: Duration { oldest.map { MonotonicTime.now - $0 } ?? .zero }

  /// A batch is given to the disk. One that hangs never says how many entries came of it.
  func beginTaking() { takingSince = .now }

  /// The disk has taken the batch, or has failed.
  func endTaking() { takingSince = nil }

  /// Readers do not see all that was read.
  func noteWaiting() { waitingSince = waitingSince ?? .now }

  /// All that was read is published.
  func noteNothingWaits() { waitingSince = nil }

  /// Another process writes the log: what waited here is its to publish.
  package func standBy() { (publishedAt, waitingSince) = (nil, nil) }

  func count(_ taken: AuditJournal.Taken) {
    repeated.increment(by: UInt64(taken.repeated))
    for (label, count) in taken.appended {
      let count = UInt64(count)
      switch label {
      case .obligation(let signature):
        entries[.obligation].increment(by: count)
        signatures[signature].increment(by: count)
      case .effect: entries[.effect].increment(by: count)
      case .decision: entries[.decision].increment(by: count)
      case .gap(let cause):
        entries[.gap].increment(by: count)
        if cause == .unreadable { gaps[.unreadable].increment(by: count) }
      }
    }
  }

  func countGap(_ cause: AuditEntry.Gap.Cause) { gaps[cause].increment() }

  func countReadError() { readErrors.increment() }

  func countSigningFailure() { signingFailures.increment() }

  func countFailure(of witness: String) { witnesses[witness]?.increment() }

  func countAnswer(_ status: Int) { answers.first { $0.status == status }?.counter.increment() }

  /// A checkpoint of so many entries was published before this process began.
  package func noteFound(_ size: UInt64) { self.size.set(Double(size)) }

  /// A checkpoint of so many entries is published. Whatever waits behind them waits since now at most.
  func notePublished(_ size: UInt64) {
    self.size.set(Double(size))
    (publishedAt, waitingSince) = (.now, nil)
  }

  func noteWitnessed(_ size: UInt64) { witnessedSize.set(Double(size)) }

  private static func seconds(since time: MonotonicTime?) -> Double {
    time.map { Double((MonotonicTime.now - $0).wholeNanoseconds) / 1e9 } ?? 0
  }
}
