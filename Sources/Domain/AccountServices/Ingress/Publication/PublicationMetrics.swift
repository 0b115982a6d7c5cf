import AccountEvents
package import Telemetry

/// What operators watch of the way from the ingress to the log.
package struct PublicationMetrics: Sendable {
  /// Events that Apple signed and that are kept aside, by reason: the one to alarm on.
  let quarantined: CounterFamily<QuarantinedEvent.Reason>
  let repeated: Counter
  let spooled: Counter
  let drained: Counter
  let isLogSuspect: Gauge
  let refused: Gauge

  /// Makes the metrics in `registry`.
  package init(_ registry: MetricsRegistry) {
    quarantined = registry.counters(
      "siwa_ingress_events_quarantined_total",
      "Events that Apple signed and that cannot be acted on, by reason. Alarm on any increase: each is an obligation.",
      by: "reason")
    repeated = registry.counter(
      "siwa_ingress_events_repeated_total", "Events that Apple sent again after they had been accepted.")
    spooled = registry.counter(
      "siwa_ingress_events_spooled_total", "Events that the spool took because the log failed or was late.")
    drained = registry.counter("siwa_ingress_events_drained_total", "Events that went from the spool to the log.")
    refused = registry.gauge(
      "siwa_spool_refused_records",
      "Records in the spool that the log refuses and quarantine, too, each with all that follows of its account. Alarm on any."
    )
    isLogSuspect = registry.gauge(
      "siwa_ingress_log_suspect", "1 while the log fails or is late and acknowledges nobody, else 0.")
  }
}
