package import AccountEvents
package import EventLoop
package import Telemetry

/// Compares our clock with Apple's, so that somebody can mend ours before it diverts what Apple sends into quarantine, or
/// refuses who signs in.
///
/// Apple's clock is seen in two places: the field `Date` of what the keys endpoint answers, at each fetch; and, by the
/// ingress, when a notification says that it was signed, which is signed too, but which lies as far back as the notification was on its
/// way. So only the first shows a clock of ours that is ahead, and only the first says that all is well again: a
/// signature that is not ahead of our clock proves nothing, whoever sends it.
@Loop
package final class ClockWatch {
  /// What Apple signs that has to fit our clock.
  package enum Signed: Sendable {
    /// What the ingress takes. Whoever watches it tells when each was signed.
    case notifications
    /// What applications hand over.
    case identityTokens

    fileprivate var warning: StaticString {
      switch self {
      case .notifications:
        "our clock and Apple's lie apart: beyond apple.clock-tolerance what comes goes into quarantine"
      case .identityTokens: "our clock and Apple's lie apart: beyond apple.clock-tolerance nobody can sign in"
      }
    }
  }

  /// Below that, what lies between is the way of an answer and its whole seconds.
  private static let leastDifference = Duration.seconds(5)
  /// How long a signature that was ahead of our clock counts.
  static let memory = Duration.seconds(600)

  private let limit: Duration
  private let tolerance: Duration
  private let signed: Signed
  private let difference: Gauge
  /// Nil where nobody tells when what comes was signed.
  private let age: Gauge?
  private let logger: Logger
  private let loopTime: @Sendable () -> MonotonicTime
  private var isApart = false
  private var isApartByAnswers = false
  /// How far our clock was ahead as Apple last answered, what it said then, and when that was.
  private var answered: (apart: Duration, at: Timestamp, seen: MonotonicTime)?
  /// The lowest age of a signature, and when it was seen.
  private var youngest: (age: Duration, seen: MonotonicTime)?

  /// A watch that speaks up at half of `tolerance`: how far the clocks may lie apart before what Apple sends is diverted.
  package init(
    tolerance: Duration, of signed: Signed, registry: MetricsRegistry, logger: Logger,
    loopTime: @escaping @Sendable () -> MonotonicTime
  ) {
    (limit, self.signed, self.logger) = (max(tolerance / 2, Self.leastDifference), signed, logger)
    (self.tolerance, self.loopTime) = (max(tolerance, Self.leastDifference), loopTime)
    difference = registry.gauge(
      "siwa_apple_clock_difference_seconds",
      "Our clock minus Apple's, as Apple's last answer about its keys said; NaN before the first. Alarm beyond 30 either way."
    )
    age =
      signed == .notifications
      ? registry.gauge(
        "siwa_ingress_notification_age_seconds",
        "Our clock minus the time at which Apple signed a notification, the lowest of ten minutes; NaN before the first. Below 0 ours is behind."
      ) : nil
    difference.set(.nan)
    age?.set(.nan)
  }

  /// Takes what Apple's clock said in an answer that came at `now`.
  package func compare(withAnswerOf date: Timestamp, at now: Timestamp) {
    let apart = now - date
    answered = (apart, now, loopTime())
    difference.set(apart / .seconds(1))
    isApartByAnswers = apart.magnitude > limit
    if !isApartByAnswers { youngest = nil }
    note(apart)
  }

  /// Takes when Apple signed a notification that came at `now`, and that was not accepted before.
  package func compare(withSignatureOf issue: Timestamp, at now: Timestamp) {
    let (apart, time) = (now - issue, loopTime())
    if let youngest, youngest.age <= apart, time - youngest.seen < Self.memory { return }
    youngest = (apart, time)
    age?.set(apart / .seconds(1))
    note(apart)
  }

  /// Whether our clock, which says `now`, is known to be ahead of Apple's by more than the tolerance: it was when Apple last
  /// answered, and has not been set back since.
  package func isAhead(at now: Timestamp) -> Bool {
    guard let answered else { return false }
    // A machine that slept looks like one whose clock was set ahead: only what it was set back counts.
    let turned = (now - answered.at) - (loopTime() - answered.seen)
    return answered.apart + min(turned, .zero) > tolerance
  }

  private func note(_ apart: Duration) {
    let wasApart = isApart
    isApart = isApartByAnswers || youngest.map { $0.age < .zero - limit } ?? false
    guard isApart != wasApart else { return }
    let metadata: LogMetadata = ["clock.difference": .seconds(apart)]
    if isApart {
      logger.warning(signed.warning, metadata)
    } else {
      logger.notice("our clock and Apple's agree again", metadata)
    }
  }
}

extension Duration {
  fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}
