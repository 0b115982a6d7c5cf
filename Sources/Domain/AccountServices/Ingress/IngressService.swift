package import AccountEvents
package import AppleID
package import EventLoop
package import HTTPServer
package import Telemetry

/// The ingress: takes Apple's notifications over TLS, and puts what they say onto the log, the events of an account in the
/// order in which they were accepted, within one process.
@Loop
package final class IngressService: Service {
  /// Seconds that an answer "not now" asks Apple to wait.
  private static let retryAfter = 30

  /// Where notifications are taken, with the real port.
  package nonisolated let address: SocketAddress
  /// Where operators ask, with the real port.
  package nonisolated let administrationAddress: SocketAddress

  private let server: HTTPServer
  private let administration: AdministrationServer
  private let certificate: CertificateWatch
  private let keys: AppleKeys
  private let publisher: EventPublisher
  private let readiness = Readiness([.keys, .kafka, .service])
  private let logger: Logger
  private let lameDuck: Duration
  private var isDraining = false
  /// Says what is weak about the topics.
  var topics: TopicWatch?

  /// Binds both addresses: what is wrong with them or with the certificate shows here.
  package init(
    _ settings: IngressSettings, verifier: NotificationVerifier, keys: AppleKeys, publisher: EventPublisher,
    registry: MetricsRegistry, logger: Logger, now: @escaping @Sendable () -> Timestamp
  ) throws(HTTPServerError) {
    (self.keys, self.publisher, self.logger) = (keys, publisher, logger)
    let clock = ClockWatch(
      tolerance: verifier.clockTolerance, of: .notifications, registry: registry, logger: logger, loopTime: { .now })
    keys.whenDated = { date in clock.compare(withAnswerOf: date, at: now()) }
    let endpoint = NotificationEndpoint(
      path: settings.path, largestBody: settings.limits.body, retryAfter: Self.retryAfter,
      verifier: verifier, keys: keys, publisher: publisher, clock: clock, metrics: IngressMetrics(registry),
      logger: logger, now: now)
    var configuration = HTTPServerConfiguration(
      address: settings.listen, tls: settings.tls, limits: settings.limits, deadlines: settings.deadlines,
      sharesPort: settings.sharesPort)
    configuration.proxies = settings.proxies
    server = try HTTPServer(configuration) { request in await endpoint.respond(to: request) }
    lameDuck = settings.lameDuck
    administration = try AdministrationServer(settings.admin, readiness: readiness, registry: registry, logger: logger)
    (address, administrationAddress) = (server.address, administration.address)
    ServerMetrics.add(server, to: registry)
    certificate = CertificateWatch(server, now: now, registry: registry, logger: logger)
  }

  /// Serves until `drain` has ended.
  package func run() async {
    guard !isDraining else { return }  // told to end before it began
    readiness[.service] = .ready
    logger.info(
      "ingress listens",
      ["listen.address": .describing(address), "listen.administration": .describing(administrationAddress)])
    await withDiscardingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [keys] in await keys.run() }
      group.addTask(executorPreference: Loop.executor) { [self] in
        await readiness.watch(.keys, logger) { keys.current.keyIDs.isEmpty ? .notReady(cause: "no keys yet") : .ready }
      }
      group.addTask(executorPreference: Loop.executor) { [self] in
        await readiness.watch(.kafka, logger, publisher.check)
      }
      group.addTask(executorPreference: Loop.executor) { [publisher] in await publisher.drain() }
      group.addTask(executorPreference: Loop.executor) { [topics] in await topics?.run() }
      group.addTask(executorPreference: Loop.executor) { [administration] in await administration.run() }
      group.addTask(executorPreference: Loop.executor) { [certificate] in await certificate.run() }
      await server.run()
      group.cancelAll()
    }
  }

  /// Takes a certificate that was replaced, without waiting for the next look at it.
  package func renewCertificate() { certificate.look(insisting: true) }

  /// Ends in good order: takes nothing new, answers what was accepted, waits for the log, all within `patience`. What the
  /// log has not acknowledged stays in the spool. Where the settings have a time as a lame duck, that comes before.
  package func drain(within patience: Duration) async {
    isDraining = true
    await readiness.end(after: lameDuck, logger)
    let end = MonotonicTime.now + patience
    logger.info("ingress drains", ["http.connections": .integer(server.connectionCount)])
    await withDiscardingTaskGroup { [publisher, server, logger] group in
      group.addTask(executorPreference: Loop.executor) {
        do {
          try await Loop.sleep(until: end)
          // Nobody gets an answer any more, and what still waits for the log waits for nothing.
          logger.warning("the time to drain is over before all was answered")
        } catch {
          logger.debug("all was answered in time")  // which is why this task was cancelled
        }
        await publisher.close(by: end)
      }
      await server.drain(within: patience)
      group.cancelAll()
    }
    if let failure = server.partingFailure {
      logger.warning(
        "the system has no filters for sockets: who was in the middle of connecting to the shared port was reset",
        ["cause": .describing(failure)])
    }
    await administration.end()
    logger.info("ingress ended")
  }
}
