package import Kafka
package import Telemetry

/// What operators watch of the connections to the brokers over which records are sent.
package struct KafkaMetrics: Sendable {
  private let queuedRecords, queuedBytes, roundTrip, throttle: Gauge
  private let retries, failures, timeouts: Counter

  /// Makes the metrics in `registry`.
  package init(_ registry: MetricsRegistry) {
    queuedRecords = registry.gauge(
      "siwa_kafka_queue_records", "Records that wait to be sent to Kafka, or to be acknowledged.")
    queuedBytes = registry.gauge("siwa_kafka_queue_bytes", "How many bytes these are.")
    roundTrip = registry.gauge(
      "siwa_kafka_round_trip_seconds",
      "From a request to its answer: of the slowest broker, what 99 of 100 requests stayed below lately.")
    throttle = registry.gauge(
      "siwa_kafka_throttle_seconds", "How long a broker held back an answer at most lately, because of a quota.")
    retries = registry.counter("siwa_kafka_retries_total", "Requests to brokers that were sent again.")
    failures = registry.counter("siwa_kafka_request_errors_total", "Requests to brokers that could not be sent.")
    timeouts = registry.counter("siwa_kafka_request_timeouts_total", "Requests that brokers did not answer in time.")
  }

  /// Takes over what librdkafka says. A producer that takes another's place begins with nothing.
  package func note(_ new: KafkaStatistics, after old: KafkaStatistics) {
    queuedRecords.set(Double(new.queuedRecords))
    queuedBytes.set(Double(new.queuedBytes))
    roundTrip.set(Double(new.roundTrip) / 1_000_000)
    throttle.set(Double(new.throttle) / 1000)
    for (counter, new, old) in [
      (retries, new.retries, old.retries), (failures, new.failures, old.failures),
      (timeouts, new.timeouts, old.timeouts),
    ] {
      // A broker that librdkafka forgets takes its numbers with it.
      counter.increment(by: UInt64(max(0, new - old)))
    }
  }
}
