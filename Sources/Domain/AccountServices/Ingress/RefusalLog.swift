package import AccountEvents
package import AppleID
package import EventLoop
package import Telemetry

/// Logs refusals, but not at the rate of whoever floods us: a line for each reason and ten seconds, with how many were
/// not logged in between. The metrics count all of them.
@Loop
package final class RefusalLog {
  private static let pause = Duration.seconds(10)

  private let logger: Logger
  private var silent: [Refusal: (until: MonotonicTime, count: Int)] = [:]

  /// Nothing was refused yet.
  package init(_ logger: Logger) { self.logger = logger }

  /// Notes that something from `peer` was refused. `audience` is asked for the app that Apple addressed, where that is why:
  /// one of ours, often, that the configuration lacks.
  package func note(
    _ refusal: Refusal, from peer: SocketAddress, at now: MonotonicTime, audience: () -> ClientID?
  ) {
    var count = 0
    if let entry = silent[refusal] {
      guard entry.until <= now else {
        silent[refusal] = (entry.until, entry.count + 1)
        return
      }
      count = entry.count
    }
    silent[refusal] = (now + Self.pause, 0)
    var metadata: LogMetadata = [
      "reason": .string(refusal.rawValue), "http.peer": .string(peer.host), "notLogged": .integer(count),
    ]
    if refusal == .unknownAudience, let audience = audience() {
      metadata.set("audience", .string(audience.text))
    }
    logger.notice("notification refused", metadata)
  }
}
