import AccountEvents
import AppleID
package import EventLoop
package import Telemetry

/// What operators see of teams with two keys: which of them Apple accepts.
@Loop
package final class KeyTakeovers {
  private let gauges: [ClientID: Gauge]
  private let logger: Logger

  /// Makes a metric for each app whose team has a second key.
  package init(_ teams: TeamsSettings, registry: MetricsRegistry, logger: Logger) {
    self.logger = logger
    var gauges: [ClientID: Gauge] = [:]
    for (client, team) in teams.teams where teams.secondKeys[team] != nil {
      gauges[client] = registry.gauge(
        "siwa_apple_second_key_signs",
        "Whether a team's second key signs for the app, as Apple has refused the first: 1, else 0",
        labels: ["client": client.text])
    }
    self.gauges = gauges
  }

  /// One key of a team's has come in the place of the other.
  func tell(_ takeover: KeyTakeover) {
    gauges[takeover.client]?.set(takeover.isSecond ? 1 : 0)
    logger.warning(
      "Apple refuses a key of the team's, and accepts the other one",
      [
        "apple.client": .string(takeover.client.text), "apple.team": .string(takeover.team.text),
        "key.refused": .string(takeover.refused.text), "key.signing": .string(takeover.signing.text),
      ])
  }
}
