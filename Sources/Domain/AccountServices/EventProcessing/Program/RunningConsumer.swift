import AccountEvents
package import AccountStore
package import EventLoop
import HTTPServer
package import Kafka
package import Telemetry

/// A consumer on Kafka, with what runs beside it: the whole program, but for signals.
@Loop
package final class RunningConsumer {
  /// Where operators ask, with the real port.
  package nonisolated let administrationAddress: SocketAddress

  /// How long the cluster may say nothing while Apple's keys are read.
  private static let keysLimit = Duration.seconds(30)

  /// How many partitions it has by now.
  package var partitionCount: Int { service.partitionCount }

  private let service: ConsumerService
  private let companions: [ConsumerSurroundings.Companion]

  /// Builds it. Throws what is wrong with addresses or properties. The store stays the caller's.
  package init<Program: ConsumerProgram>(
    _ configuration: ConsumerConfiguration<Program>, store: any AccountStore, registry: MetricsRegistry, logger: Logger
  ) async throws {
    let kafka = try configuration.kafka.configuration(of: Program.program)
    let log = try KafkaEventLog(
      topics: [.deadLetters(of: Program.consumer)], kafka, deadline: ConsumerSettings.logDeadline, registry: registry,
      logger: logger)
    let settings = configuration.consumer
    let surroundings = ConsumerSurroundings(
      store: store, log: log, kafka: kafka, concurrency: settings.bounds.concurrency,
      teams: configuration.verification?.teams ?? [:], registry: registry, logger: logger)
    var consumer = try await Program.makeConsumer(configuration.own, in: surroundings)
    if let settings = configuration.verification {
      let keys = RecordedSigningKeys(Agenda(SystemAlarmClock()), logger: logger) { () throws(KafkaError) in
        try await LetterBox(kafka, .quarantine, within: Self.keysLimit, log: logger.forKafka).signingKeys()
      }
      // The first event would wait for them.
      _ = keys.readAgain()
      let verification = EventVerification(settings, keys, store: store)
      consumer.verify = verification.check
      consumer.verifies = configuration.verifies
    }
    let processor = EventProcessor(
      consumer, store: store, log: log, bounds: settings.bounds, agenda: Agenda(SystemAlarmClock()),
      random: { Double.random(in: 0...1) }, now: { Timestamp.now }, registry: registry, logger: logger)
    service = try ConsumerService(
      processor, store: store, log: log, administration: settings.admin, registry: registry, logger: logger
    ) { () throws(KafkaError) in
      let consumer = try Consumer(kafka, group: settings.membership, log: logger.forKafka)
      try consumer.subscribe(to: [Topic.accountEvents.name, Topic.retries(of: Program.consumer).name])
      return consumer
    }
    service.topics = TopicWatch(
      kafka, TopicPlan.of(Program.consumer), every: TopicWatch.hourly, registry: registry, logger: logger)
    companions = surroundings.companions
    administrationAddress = service.administrationAddress
  }

  /// Serves until `drain` has ended. Returns what makes it impossible to go on.
  package func run() async -> KafkaError? {
    await withTaskGroup(of: KafkaError?.self) { group in
      for companion in companions {
        group.addTask(executorPreference: Loop.executor) {
          await companion.run()
          return nil
        }
      }
      let failure = await serve()
      if failure != nil { for companion in companions { await companion.drain(.zero) } }
      return failure
    }
  }

  private func serve() async -> KafkaError? {
    do throws(KafkaError) {
      try await service.run()
      return nil
    } catch {
      return error
    }
  }

  /// Ends in good order, within `patience`.
  package func drain(within patience: Duration) async {
    let end = MonotonicTime.now + patience
    for companion in companions { await companion.drain(max(end - .now, .zero)) }
    await service.drain(within: max(end - .now, .zero))
  }
}
