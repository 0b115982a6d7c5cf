package import Telemetry

/// What operators watch of the validation of refresh tokens. docs/token-validation.md names it.
package struct ValidationMetrics: Sendable {
  /// What a request came to.
  enum Outcome: String, CaseIterable {
    /// The token is good.
    case good
    /// It is not.
    case invalid
    /// Nobody knows; it is asked about again a day later.
    case doubtful
    /// Apple was not asked after all, or throttles: it is due as before.
    case notAsked = "not-asked"
    /// The store could not write it down; it is asked about again a day later.
    case lost
  }

  let outcomes: CounterFamily<Outcome>
  /// Findings that went to the outbox.
  let found: Counter
  /// Whether this process does it.
  let leads: Gauge
  /// For how long the token has been due that was validated before and has waited longest.
  let behind: Gauge
  /// How many tokens are due.
  let due: Gauge
  /// How many apps are not asked for.
  let stopped: Gauge
  /// Requests a second.
  let rate: Gauge

  /// Makes the metrics in `registry`.
  package init(_ registry: MetricsRegistry) {
    outcomes = registry.counters(
      "siwa_accounts_validations_total", "Refresh tokens that were validated at Apple, by what came of it.",
      by: "outcome")
    found = registry.counter(
      "siwa_accounts_credentials_invalid_total",
      "Authorizations that were found to be over without Apple having told us: events credential-invalid.")
    leads = registry.gauge(
      "siwa_accounts_validation_leads", "Whether this process validates refresh tokens for all: 1, else 0.")
    behind = registry.gauge(
      "siwa_accounts_validation_behind_seconds",
      "For how long the refresh token has been due that was validated before and has waited longest.")
    due = registry.gauge("siwa_accounts_validation_due", "How many refresh tokens are due to be validated.")
    stopped = registry.gauge(
      "siwa_accounts_validation_stopped",
      "Apps whose tokens are not validated until an operator has put something right. Alarm above 0.")
    rate = registry.gauge("siwa_accounts_validation_rate", "How many validations a second there are to be now.")
  }

  /// Another process knows from now on what there is to do: old values here would raise alarms for ever.
  func leaseIsOver() {
    for gauge in [leads, behind, due, stopped, rate] { gauge.set(0) }
  }
}
