import EventLoop
import Telemetry

/// What operators see of the spool. `docs/` names these; renaming one breaks dashboards.
struct SpoolMetrics: Sendable {
  /// What failed.
  enum Failure: String, CaseIterable {
    /// A record was refused: the spool or the disk is full.
    case full
    /// A transaction failed for another reason.
    case write
    /// Records could not be read.
    case read
  }

  let commits: Counter
  let inserts: Counter
  let removals: Counter
  let failures: CounterFamily<Failure>

  /// Makes the metrics in `registry`.
  init(_ registry: MetricsRegistry) {
    commits = registry.counter("siwa_spool_commits_total", "Transactions of the spool that were synced to its disk.")
    inserts = registry.counter("siwa_spool_inserts_total", "Records that were written to the spool.")
    removals = registry.counter("siwa_spool_removals_total", "Records that were taken out of the spool.")
    failures = registry.counters(
      "siwa_spool_failures_total", "Transactions and reads of the spool that failed, by cause.", by: "cause")
  }

  /// Adds what `spool` says of itself; it is asked for when the metrics are rendered, which happens on the loop.
  static func add(_ spool: Spool, to registry: MetricsRegistry) {
    func gauge(_ name: String, _ help: String, _ value: @escaping @Loop @Sendable (Spool) -> Double) {
      registry.gauge("siwa_spool_\(name)", help) { [weak spool] in
        guard let spool else { return 0 }
        return Loop.assumeIsolated { value(spool) }
      }
    }
    gauge("records", "Records in the spool: answered 200, and not known to be on Kafka.") { Double($0.depth) }
    gauge("damaged_records", "Records in the spool that cannot be read, and stay there.") { Double($0.damaged.count) }
    gauge("set_aside", "Damaged files that were set aside, each with what it may hold. Alarm on any.") {
      Double($0.setAside)
    }
    gauge("takes_records", "1 while it takes records, 0 while it or its disk is full or fails. Alarm on 0.") {
      $0.takesRecords ? 1 : 0
    }
    gauge("bytes", "What the records in the spool take of its limit.") { Double($0.bytes) }
    gauge("oldest_age_seconds", "How long the oldest record has been in the spool; 0 where it is empty.") {
      $0.ageOfOldest / .seconds(1)
    }
  }
}
