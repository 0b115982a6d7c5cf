package import AccountEvents
import Synchronization
package import Telemetry

/// What operators see of the keys: how old they are, how many, and how their fetches went.
package final class AppleKeysMetrics: Sendable {
  let fetches: Counter
  let failures: CounterFamily<AppleKeysFailure.Reason>
  let keys: Gauge
  private let foreign: Gauge
  private let retired: Gauge
  private let fetchedAt = Mutex<Timestamp?>(nil)

  /// Makes the metrics in `registry`. `now` tells the time when they are rendered.
  package init(_ registry: MetricsRegistry, now: @escaping @Sendable () -> Timestamp) {
    fetches = registry.counter("siwa_apple_keys_fetches_total", "Times that Apple was asked for its keys")
    failures = registry.counters(
      "siwa_apple_keys_failures_total", "Fetches, reads and writes of Apple's keys that failed", by: "reason")
    keys = registry.gauge("siwa_apple_keys", "Keys in the set in use")
    foreign = registry.gauge(
      "siwa_apple_keys_foreign", "Keys in Apple's last set that are not for RS256 signatures, and were passed over")
    retired = registry.gauge(
      "siwa_apple_keys_retired", "Keys that Apple has no more, by which what they signed before is still verified")
    registry.gauge("siwa_apple_keys_age_seconds", "Time since Apple gave the set in use; +Inf without one") {
      [weak self] in
      guard let fetchedAt = self?.fetchedAt.withLock({ $0 }) else { return .infinity }
      return max(0, (now() - fetchedAt) / .seconds(1))  // a clock may have been ahead
    }
  }

  func inUse(_ set: AppleKeySet, fetchedAt time: Timestamp) {
    keys.set(Double(set.keyIDs.count))
    foreign.set(Double(set.foreignCount))
    retired.set(Double(set.retiredKeys.count))
    fetchedAt.withLock { $0 = time }
  }
}
