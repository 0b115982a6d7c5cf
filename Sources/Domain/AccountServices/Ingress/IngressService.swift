package import AccountEvents
package import AppleID
package import EventLoop
package import HTTPServer
package import Telemetry

/// The ingress: takes Apple's notifications over TLS, and puts what they say onto the log.
@Loop
package final class IngressService {
  /// Seconds that an answer "not now" asks Apple to wait.
  private static let retryAfter = 30
  /// How often a part is asked whether it is still ready, and whether it is ready by now.
  private static let pulse = (ready: Duration.seconds(5), notReady: Duration.milliseconds(250))
  /// What administration may cost: a handful of small requests.
  private static let administrationLimits = HTTPServerLimits(
    head: 8192, fields: 64, body: 1024, connections: 64, connectionsPerAddress: 64)
  private static let administrationDeadlines = HTTPServerDeadlines(
    handshake: .seconds(5), head: .seconds(5), body: .seconds(5), idle: .seconds(60), request: .seconds(10))

  /// Where notifications are taken, with the real port.
  package nonisolated let address: SocketAddress
  /// Where operators ask, with the real port.
  package nonisolated let administrationAddress: SocketAddress

  private let server: HTTPServer
  private let administration: HTTPServer
  private let keys: AppleKeys
  private let log: any EventLog
  private let readiness = Readiness()
  private let logger: Logger
  private var isDraining = false

  /// Binds both addresses: what is wrong with them or with the certificate shows here.
  package init(
    _ settings: IngressSettings, verifier: NotificationVerifier, keys: AppleKeys, log: any EventLog,
    registry: MetricsRegistry, logger: Logger, now: @escaping @Sendable () -> Timestamp
  ) throws(HTTPServerError) {
    (self.keys, self.log, self.logger) = (keys, log, logger)
    let endpoint = NotificationEndpoint(
      path: settings.path, largestBody: settings.limits.body, retryAfter: Self.retryAfter,
      verifier: verifier, keys: keys, log: log, metrics: IngressMetrics(registry), logger: logger, now: now)
    server = try HTTPServer(
      HTTPServerConfiguration(
        address: settings.listen, tls: settings.tls, limits: settings.limits, deadlines: settings.deadlines,
        sharesPort: settings.sharesPort)
    ) { request in await endpoint.respond(to: request) }
    let administrator = AdministrationEndpoint(readiness: readiness, registry: registry)
    administration = try HTTPServer(
      HTTPServerConfiguration(
        address: settings.admin, tls: nil, limits: Self.administrationLimits,
        deadlines: Self.administrationDeadlines, sharesPort: false)
    ) { request in administrator.respond(to: request) }
    (address, administrationAddress) = (server.address, administration.address)
    ServerMetrics.add(server, to: registry)
  }

  /// Serves until `drain` has ended.
  package func run() async {
    guard !isDraining else { return }  // told to end before it began
    readiness.note(.service, nil)
    logger.info(
      "ingress listens",
      ["listen.address": .describing(address), "listen.administration": .describing(administrationAddress)])
    await withDiscardingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [keys] in await keys.run() }
      group.addTask(executorPreference: Loop.executor) { [self] in
        await watch(.keys) { keys.current.keyIDs.isEmpty ? "no keys yet" : nil }
      }
      group.addTask(executorPreference: Loop.executor) { [self] in
        await watch(.kafka) {
          do throws(EventLogError) {
            try await log.check()
            return nil
          } catch {
            return error.detail
          }
        }
      }
      group.addTask(executorPreference: Loop.executor) { [administration] in await administration.run() }
      await server.run()
      group.cancelAll()
    }
  }

  /// Ends in good order: takes nothing new, answers what was accepted, waits for the log, all within `patience`.
  /// Returns how many records the log never acknowledged; Apple got no 200 for their notifications.
  package func drain(within patience: Duration) async -> Int {
    let end = MonotonicTime.now + patience
    isDraining = true
    readiness.note(.service, "draining")
    logger.info("ingress drains", ["http.connections": .integer(server.connectionCount)])
    let unacknowledged = await withTaskGroup(of: Int.self) { [log, server] group in
      group.addTask(executorPreference: Loop.executor) {
        // Cancelled where all were answered in time. Where not, nobody gets an answer any more, and what still waits for
        // the log waits for nothing.
        do { try await Loop.sleep(until: end) } catch {}
        return await log.close(within: max(end - .now, .zero))
      }
      await server.drain(within: patience)
      group.cancelAll()
      return await group.next() ?? 0
    }
    await administration.drain(within: .zero)
    if unacknowledged > 0 {
      logger.warning("records were not acknowledged before the end", ["kafka.records": .integer(unacknowledged)])
    }
    logger.info("ingress ended")
    return unacknowledged
  }

  /// Asks a part again and again what keeps it from being ready (nil: nothing), and logs what changes.
  private func watch(_ part: Readiness.Part, _ ask: @Loop () async -> String?) async {
    while true {
      let cause = await ask()
      if isDraining { return }
      note(part, cause)
      do {
        try await Loop.sleep(for: readiness.isReady(part) ? Self.pulse.ready : Self.pulse.notReady)
      } catch {
        return  // the service ends
      }
    }
  }

  private func note(_ part: Readiness.Part, _ cause: String?) {
    let wasReady = readiness.isReady(part)
    guard readiness.note(part, cause) else { return }
    if let cause {
      // A part that is not ready yet is no surprise; one that is not ready any more is.
      let metadata: LogMetadata = ["part": .string(part.rawValue), "cause": .string(cause)]
      if wasReady { logger.warning("not ready", metadata) } else { logger.info("not ready yet", metadata) }
    } else {
      logger.info("ready", ["part": .string(part.rawValue)])
    }
  }
}
