import AccountEvents
package import AccountStore
import AppleID
import Cryptography
package import EventLoop
import HTTPServer
import Kafka
package import Telemetry

/// `siwa-accounts` as a service: answers applications, keeps Apple's keys at hand, looks after what was broken off,
/// publishes what was asked for, and tells what happens.
@Loop
package final class AccountsService: Service {
  /// How many requests go to Apple at once.
  private static let concurrency = 64

  /// Where applications ask, with the real port.
  package nonisolated let address: SocketAddress
  /// Where operators ask, with the real port.
  package nonisolated let administrationAddress: SocketAddress

  private let server: EndpointServer
  private let lameDuck: Duration
  private let administration: AdministrationServer
  private let keys: AppleKeys
  private let store: any AccountStore
  private let signIns: SignIns
  private let exchanges: ExchangeWatch
  private let events: EventStreams
  private let outbox: OutboxPublisher
  private let topics: TopicWatch
  private let size: StoreWatch
  private let deletions: DeletionWatch
  /// Nil where it is turned off.
  private let validation: DailyValidation?
  private var validating: Task<Void, Never>?
  private let readiness = Readiness([.keys, .store, .kafka, .service])
  private let logger: Logger
  private var isDraining = false

  /// Binds both addresses. Throws what is wrong with them and with the certificate. The store stays the caller's.
  package init(
    _ configuration: AccountsConfiguration, store: any AccountStore, registry: MetricsRegistry, logger: Logger
  ) async throws {
    (self.store, self.logger) = (store, logger)
    let keys = AppleKeys(configuration.apple, userAgent: AccountsCommand.program, registry: registry, logger: logger)
    let clock = ClockWatch(
      tolerance: configuration.apple.clockTolerance, of: .identityTokens, registry: registry, logger: logger,
      loopTime: { .now })
    keys.whenDated = { date in clock.compare(withAnswerOf: date, at: .now) }
    await keys.restore()
    self.keys = keys
    let metrics = AccountsMetrics(registry)
    let takeovers = KeyTakeovers(configuration.teams, registry: registry, logger: logger)
    let endpoints = AppleTokenEndpoints(
      configuration.tokens, teams: configuration.teams, concurrency: Self.concurrency,
      userAgent: AccountsCommand.program, now: { Timestamp.now },
      takeovers: takeovers)
    let verifier = IdentityTokenVerifier(
      issuer: configuration.apple.issuer, teams: configuration.teams.teams,
      clockTolerance: configuration.apple.clockTolerance)
    let signIns = SignIns(
      store, endpoints, IdentityTokens(verifier, keys, now: { Timestamp.now }), configuration.groups, metrics: metrics,
      logger: logger, now: { Timestamp.now }, random: { Double.random(in: 0...1) })
    self.signIns = signIns
    exchanges = ExchangeWatch(store, metrics: metrics, logger: logger, now: { Timestamp.now })
    let kafka = try configuration.kafka.configuration(of: AccountsCommand.program)
    let log = try KafkaEventLog(
      topics: [.accountEvents], kafka, deadline: OutboxPublisher.logDeadline, registry: registry, logger: logger)
    let outbox = OutboxPublisher(
      store, log, holder: Base64URL.encode(try SecureRandom.bytes(16)), random: { Double.random(in: 0...1) },
      now: { Timestamp.now }, registry: registry, logger: logger)
    self.outbox = outbox
    topics = TopicWatch(kafka, TopicPlan.ofAccounts, every: TopicWatch.hourly, registry: registry, logger: logger)
    size = StoreWatch(store, registry: registry, logger: logger)
    deletions = DeletionWatch(store, registry: registry, logger: logger, now: { Timestamp.now })
    validation = try Self.validation(configuration, store, takeovers, registry, logger)
    let settings = configuration.accounts
    let sight = AccountSight(teams: configuration.teams.teams, groups: configuration.groups)
    // Streams that are behind take turns, and each turn waits for the question that the one before has asked.
    let earlier = try kafka.with(defaults: [("fetch.wait.max.ms", "10")])
    let feed = EventFeed(
      { () throws(KafkaError) in try Consumer(kafka, group: nil, log: logger.forKafka) },
      earlierSource: { () throws(KafkaError) in try Consumer(earlier, group: nil, log: logger.forKafka) },
      logger: logger)
    let events = EventStreams(
      feed, sight,
      limits: .init(
        perCaller: settings.streams, connections: settings.connections.all, descriptors: DescriptorLimit.current),
      metrics: EventStreamMetrics(registry), logger: logger, identify: { store.id(of: $0) })
    self.events = events
    let endpoint = AccountsEndpoint(
      Callers(settings.callers, rate: settings.rate), signIns,
      Deletions(
        store, sight, logger: logger, now: { Timestamp.now }, isAhead: { clock.isAhead(at: $0) },
        announce: { outbox.wake() }),
      AccessTokens(store, endpoints, sight, logger: logger), events, store, sight, auditLog: settings.auditLog,
      metrics: metrics, logger: logger)
    lameDuck = settings.lameDuck
    server = try EndpointServer(
      settings.listen, tls: settings.tls,
      EndpointServer.Bounds(
        head: 16_384, body: 2 * SignInRequest.largestBody, connections: settings.connections.all,
        connectionsPerAddress: settings.connections.perAddress, request: .seconds(60)),
      proxies: settings.proxies, registry: registry, logger: logger, now: { Timestamp.now },
      refusal: { Problem($0).response },
      handler: endpoint.respond)
    administration = try AdministrationServer(settings.admin, readiness: readiness, registry: registry, logger: logger)
    (address, administrationAddress) = (server.address, administration.address)
  }

  /// Serves until `drain` has ended.
  package func run() async {
    guard !isDraining else { return }  // told to end before it began
    readiness[.service] = .ready
    logger.info(
      "accounts listens",
      ["listen.address": .describing(address), "listen.administration": .describing(administrationAddress)])
    // Not one of the group: it is told to end, and then writes down what Apple has said.
    validating = Task(executorPreference: Loop.executor) { [validation] in await validation?.run() }
    await withDiscardingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [keys] in await keys.run() }
      group.addTask(executorPreference: Loop.executor) { [self] in
        await readiness.watch(.keys, logger) { keys.current.keyIDs.isEmpty ? .notReady(cause: "no keys yet") : .ready }
      }
      group.addTask(executorPreference: Loop.executor) { [self] in
        await readiness.watch(.store, logger) { await storeState() }
      }
      group.addTask(executorPreference: Loop.executor) { [self] in
        await readiness.watch(.kafka, logger) { await outbox.readiness() }
      }
      group.addTask(executorPreference: Loop.executor) { [exchanges] in await exchanges.run() }
      group.addTask(executorPreference: Loop.executor) { [outbox] in await outbox.run() }
      group.addTask(executorPreference: Loop.executor) { [events] in await events.run() }
      group.addTask(executorPreference: Loop.executor) { [topics] in await topics.run() }
      group.addTask(executorPreference: Loop.executor) { [size] in await size.run() }
      group.addTask(executorPreference: Loop.executor) { [deletions] in await deletions.run() }
      group.addTask(executorPreference: Loop.executor) { [administration] in await administration.run() }
      await server.run()
      group.cancelAll()
    }
  }

  /// Takes a certificate that was replaced, without waiting for the next look at it.
  package func renewCertificate() { server.renewCertificate() }

  /// Ends in good order, within `patience`: takes nothing new, answers what was asked, has the store keep every token that
  /// Apple has granted, or Apple take it back, and publishes what it can. Where the settings have a time as a lame duck, that
  /// comes before.
  package func drain(within patience: Duration) async {
    isDraining = true
    await readiness.end(after: lameDuck, logger)
    logger.info("accounts drains", ["http.connections": .integer(server.connectionCount)])
    validation?.end()
    events.end()
    // A slow application must not take the time in which tokens are kept.
    await server.drain(within: patience * 3 / 5)
    await signIns.drain()
    await outbox.drain()
    await validating?.value
    await administration.end()
    logger.info("accounts ended")
  }

  private static func validation(
    _ configuration: AccountsConfiguration, _ store: any AccountStore, _ takeovers: KeyTakeovers,
    _ registry: MetricsRegistry, _ logger: Logger
  ) throws -> DailyValidation? {
    guard configuration.validation.isOn else { return nil }
    let metrics = ValidationMetrics(registry)
    let validation = Validation(
      ValidationConfiguration(
        teams: configuration.teams, groups: configuration.groups, tokens: configuration.tokens,
        store: configuration.store, validation: configuration.validation), store: store,
      userAgent: AccountsCommand.program, takeovers: takeovers, metrics: metrics, logger: logger)
    return DailyValidation(
      store, validation, window: configuration.validation.window, holder: try Lease.newHolder(),
      clock: .system, metrics: metrics, logger: logger)
  }

  private func storeState() async -> Readiness.State {
    do throws(AccountStoreError) {
      try await store.check()
      return .ready
    } catch {
      return .notReady(cause: error.description)
    }
  }
}
