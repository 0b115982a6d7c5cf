package import AccountStore
package import EventLoop
package import HTTPServer
package import Kafka
package import Telemetry

/// A consumer as a service: reads, processes, tells operators how it is, and ends in good order.
@Loop
package final class ConsumerService {
  /// How long the group is left alone after it could not be gone on with.
  private static let pause = Duration.seconds(1)

  /// Where operators ask, with the real port.
  package nonisolated let administrationAddress: SocketAddress
  /// Says what is weak about the topics.
  package var topics: TopicWatch?

  /// How many partitions are ours.
  package var partitionCount: Int { processor.partitionCount }

  private let processor: EventProcessor
  private let store: any AccountStore
  private let log: any EventLog
  private let size: StoreWatch
  private let makeSource: @Loop () throws(KafkaError) -> any EventSource
  private let administration: AdministrationServer
  private let readiness = Readiness([.kafka, .group, .store, .service])
  private let logger: Logger
  private var reading: Task<KafkaError?, Never>?
  private var isDraining = false

  /// Binds the address for operators. The service closes what it is given, but for the store.
  ///
  /// - Parameter makeSource: Joins the group; called again where the last source could not go on.
  package init(
    _ processor: EventProcessor, store: any AccountStore, log: any EventLog, administration address: SocketAddress,
    registry: MetricsRegistry, logger: Logger,
    source makeSource: @escaping @Loop () throws(KafkaError) -> any EventSource
  ) throws(HTTPServerError) {
    (self.processor, self.store, self.log, self.logger) = (processor, store, log, logger)
    self.makeSource = makeSource
    size = StoreWatch(store, registry: registry, logger: logger)
    administration = try AdministrationServer(address, readiness: readiness, registry: registry, logger: logger)
    administrationAddress = administration.address
  }

  /// Serves until `drain` has ended. Throws what makes it impossible to go on.
  package func run() async throws(KafkaError) {
    guard !isDraining else { return }  // told to end before it began
    readiness[.service] = .ready
    logger.info("consumer begins", ["listen.administration": .describing(administrationAddress)])
    let reading = Task(executorPreference: Loop.executor) { await self.read() }
    self.reading = reading
    var failure: KafkaError?
    await withDiscardingTaskGroup { group in
      group.addTask(executorPreference: Loop.executor) { [self] in await readiness.watch(.store, logger, checkStore) }
      group.addTask(executorPreference: Loop.executor) { [self] in await readiness.watch(.kafka, logger, checkLog) }
      group.addTask(executorPreference: Loop.executor) { [self] in
        await readiness.watch(.group, logger) { await self.processor.groupState() }
      }
      group.addTask(executorPreference: Loop.executor) { [topics] in await topics?.run() }
      group.addTask(executorPreference: Loop.executor) { [size] in await size.run() }
      group.addTask(executorPreference: Loop.executor) { [administration] in await administration.run() }
      failure = await reading.value
      if failure != nil { await administration.end() }
      group.cancelAll()
    }
    if let failure { throw failure }
  }

  /// Ends in good order, within `patience`: begins nothing more, finishes what is being worked on, tells the group how far
  /// it is. What is not finished by then, the next process does.
  package func drain(within patience: Duration) async {
    let end = MonotonicTime.now + patience
    isDraining = true
    readiness.isFrozen = true
    readiness[.service] = .notReady(cause: "draining")
    logger.info("consumer drains", ["consumer.inFlight": .integer(processor.room.held)])
    await processor.end(within: patience)
    reading?.cancel()
    _ = await reading?.value
    await log.close(within: max(end - .now, .zero))
    await administration.end()
    logger.info("consumer ended")
  }

  /// Reads until the task is cancelled. Returns why nobody can go on.
  private func read() async -> KafkaError? {
    while !Task.isCancelled {
      do throws(KafkaError) {
        let source = try makeSource()
        let failure = await read(from: source)
        await source.close()
        if let failure { throw failure }
      } catch {
        // Whoever took the name would be put out in turn by a member that comes back.
        if error.code == .fenced || error.code == .invalidConfiguration { return error }
        logger.error(
          "the group has to be joined anew",
          ["kafka.error": .string(error.code.rawValue), "cause": .string(error.detail)])
        do { try await Loop.sleep(for: Self.pause) } catch { return nil }
      }
    }
    return nil
  }

  private func read(from source: any EventSource) async -> KafkaError? {
    do throws(KafkaError) {
      try await processor.read(from: source)
      return nil
    } catch {
      return error
    }
  }

  private func checkStore() async -> Readiness.State {
    do throws(AccountStoreError) {
      try await store.check()
      return processor.storeState()
    } catch {
      return .notReady(cause: error.detail)
    }
  }

  private func checkLog() async -> Readiness.State {
    do throws(EventLogError) {
      try await log.check()
      return .ready
    } catch {
      return .notReady(cause: error.detail)
    }
  }
}
