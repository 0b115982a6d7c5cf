import AccountEvents
import AppleID
package import Telemetry

/// What operators of the ingress watch and alarm on. `docs/` names these; renaming one breaks dashboards.
package struct IngressMetrics: Sendable {
  /// How long the verifier took.
  package let verification: Histogram
  /// From a notification's verification until all its records are on the log or in the spool.
  package let publication: Histogram
  private let published: CounterFamily<NotifiedType>
  private let accepted: Counter
  private let refused: CounterFamily<Refusal>
  private let later: CounterFamily<Answer.Cause>
  private let misdirected: CounterFamily<Misdirection>

  /// What Apple notifies of.
  private enum NotifiedType: String, CaseIterable {
    case emailEnabled = "email-enabled"
    case emailDisabled = "email-disabled"
    case consentRevoked = "consent-revoked"
    case accountDelete = "account-delete"
  }

  /// Requests that are no notification at all.
  private enum Misdirection: String, CaseIterable {
    case noSuchPath = "no-such-path"
    case wrongMethod = "wrong-method"
    case tooLarge = "too-large"
    case brokenMessage = "broken-message"
  }

  /// Makes the metrics in `registry`.
  package init(_ registry: MetricsRegistry) {
    accepted = registry.counter(
      "siwa_ingress_notifications_accepted_total",
      "Notifications answered 200: verified, and on their topic or in the spool.")
    refused = registry.counters(
      "siwa_ingress_notifications_refused_total", "Notifications answered 400, by reason.", by: "reason")
    later = registry.counters(
      "siwa_ingress_notifications_deferred_total", "Notifications answered 503, by cause: Apple sends them again.",
      by: "cause")
    misdirected = registry.counters(
      "siwa_ingress_requests_rejected_total", "Requests that are no notification: wrong path, method, size, form.",
      by: "reason")
    published = registry.counters(
      "siwa_ingress_events_published_total", "Events accepted for apple.account-events.v1, by type.", by: "type")
    verification = registry.histogram(
      "siwa_ingress_verification_seconds", "Time to verify a notification.", buckets: Histogram.secondsBuckets)
    publication = registry.histogram(
      "siwa_ingress_publication_seconds",
      "Time until a notification's events are on all in-sync replicas or in the spool.",
      buckets: Histogram.secondsBuckets)
  }

  func countPublished(_ kind: AccountEvent.Kind) {
    if let type = NotifiedType(rawValue: kind.name) { published[type].increment() }
  }

  func count(_ answer: Answer) {
    switch answer {
    case .accepted: accepted.increment()
    case .refused(let refusal): refused[refusal].increment()
    case .later(let cause): later[cause].increment()
    case .noSuchPath: misdirected[.noSuchPath].increment()
    case .wrongMethod: misdirected[.wrongMethod].increment()
    case .tooLarge: misdirected[.tooLarge].increment()
    case .brokenMessage, .lost: misdirected[.brokenMessage].increment()
    }
  }
}
