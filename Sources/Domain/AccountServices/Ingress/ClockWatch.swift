package import AccountEvents
package import EventLoop
package import Telemetry

/// Compares our clock with Apple's, so that somebody can mend ours before it diverts what Apple sends into quarantine.
///
/// Apple's clock is seen in two places: the field `Date` of what the keys endpoint answers, at each fetch; and when a
/// notification says that it was signed, which is signed too, but which lies as far back as the notification was on its
/// way. So only the first shows a clock of ours that is ahead.
@Loop
package final class ClockWatch {
  /// Below that, what lies between is the way of an answer and its whole seconds.
  private static let leastDifference = Duration.seconds(5)

  private let limit: Duration
  private let difference: Gauge
  private let age: Gauge
  private let logger: Logger
  private var isApart = (byAnswers: false, bySignatures: false)

  /// A watch that speaks up at half of `tolerance`: how far the clocks may lie apart before what Apple sends is diverted.
  package init(tolerance: Duration, registry: MetricsRegistry, logger: Logger) {
    (limit, self.logger) = (max(tolerance / 2, Self.leastDifference), logger)
    difference = registry.gauge(
      "siwa_apple_clock_difference_seconds",
      "Our clock minus Apple's, as Apple's last answer about its keys said; NaN before the first. Alarm beyond 30 either way."
    )
    age = registry.gauge(
      "siwa_ingress_notification_age_seconds",
      "Our clock minus the time at which Apple signed the last notification; NaN before the first. Below 0 ours is behind."
    )
    difference.set(.nan)
    age.set(.nan)
  }

  /// Takes what Apple's clock said in an answer that came at `now`.
  package func compare(withAnswerOf date: Timestamp, at now: Timestamp) {
    let apart = now - date
    difference.set(apart / .seconds(1))
    note(apart, isApart: apart.magnitude > limit, &isApart.byAnswers)
  }

  /// Takes when Apple signed a notification that came at `now`.
  package func compare(withSignatureOf issue: Timestamp, at now: Timestamp) {
    let apart = now - issue
    age.set(apart / .seconds(1))
    note(apart, isApart: apart < .zero - limit, &isApart.bySignatures)
  }

  private func note(_ apart: Duration, isApart: Bool, _ wasApart: inout Bool) {
    guard isApart != wasApart else { return }
    wasApart = isApart
    let metadata: LogMetadata = ["clock.difference": .seconds(apart)]
    if isApart {
      logger.warning(
        "our clock and Apple's lie apart: beyond apple.clock-tolerance what comes goes into quarantine", metadata)
    } else {
      logger.notice("our clock and Apple's agree again", metadata)
    }
  }
}

extension Duration {
  fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}
