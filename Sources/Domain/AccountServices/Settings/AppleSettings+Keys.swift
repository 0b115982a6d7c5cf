import AccountEvents
package import AppleID
package import EventLoop
import HTTPClient
import Telemetry

extension AppleKeysEndpoint {
  /// Apple's keys endpoint as the configuration has it.
  @Loop
  package init(_ settings: AppleSettings, userAgent: String) {
    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: userAgent, trustAnchors: settings.trustedCA.map { .systemAnd(file: $0) } ?? .system,
        proxy: settings.proxy == .environment ? .environment : .none, connectTimeout: settings.deadline,
        maximumConnections: 2, maximumRequests: 4))
    self.init(settings.keysURL, client: client, deadline: settings.deadline)
  }
}

extension AppleKeysCache {
  /// The file that the configuration names.
  package init(_ settings: AppleSettings) {
    self.init(path: settings.keysFile, source: settings.keysURL.text, thread: BlockingThread(named: "apple-keys"))
  }
}

extension AppleKeys {
  /// How long Apple is left alone after a fetch that failed, at first and at most.
  private static let retries = (first: Duration.seconds(1), longest: Duration.seconds(60))

  /// The keys as the configuration has them.
  convenience init(
    _ settings: AppleSettings, userAgent: String, registry: MetricsRegistry, logger: Logger
  ) {
    self.init(
      from: AppleKeysEndpoint(settings, userAgent: userAgent), cache: AppleKeysCache(settings),
      pace: FetchPace(
        refresh: settings.keysRefresh, pause: settings.keysPause, firstRetry: Self.retries.first,
        longestRetry: Self.retries.longest),
      alarm: SystemAlarmClock(), now: { Timestamp.now }, jitter: { Double.random(in: 0..<1) },
      metrics: AppleKeysMetrics(registry, now: { Timestamp.now }), logger: logger)
  }
}
