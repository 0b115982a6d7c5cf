import AccountStore
import Configuration
import EventLoop
import Glibc
import HTTPServer
import Kafka
import Telemetry

/// Reads the configuration, builds the consumer, and serves until a signal comes.
struct ConsumerCommand<Program: ConsumerProgram>: Command {
  static var name: String { "" }
  static var summary: String { Program.summary }
  static var details: String {
    (Program.explanation.isEmpty ? "" : Program.explanation + "\n\n") + """
      SIGTERM or SIGINT: begins nothing new, finishes what was begun, tells Kafka how far it is, ends with 0. A second one
      ends at once, with 1, and so does what takes longer than \(Program.consumer).drain: what was begun is done again by
      the next process, and has no second effect.
      Exit codes: 0 ended as told, 1 failed, 2 the command line or the configuration has to change first.

      \(Program.schema.help(of: Program.program))
      """
  }
  static var examples: [CommandExample] {
    [
      CommandExample(Program.program, "Serves with /etc/siwa/siwa.yaml and the variables SIWA_…."),
      CommandExample(
        "\(Program.program) --set \(Program.consumer).instance=a", "One of several processes, with a name of its own."),
      CommandExample("siwa config check --program \(Program.program)", "Says beforehand whether it would start."),
    ]
  }

  /// How long telling Kafka may take in the end, where it does not answer: librdkafka would wait for a minute.
  private static var grace: Duration { .seconds(2) }

  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  func run() async -> ExitCode { await serve() }

  @Loop
  private func serve() async -> ExitCode {
    do {
      let loaded = try Program.schema.load(
        ConsumerConfiguration<Program>.self,
        from: options.sources(environment: ConfigurationSources.processEnvironment))
      let logger = Logger(level: loaded.value.log.level, format: loaded.value.log.format)
      for warning in loaded.warnings { logger.warning("configuration", ["warning": .describing(warning)]) }
      let store = try await loaded.value.store.open()
      let result = await serve(loaded.value, store, logger)
      await store.close()
      return try result.get()
    } catch let faults as ConfigurationError {
      Terminal.complain("\(faults)")
      return .misuse
    } catch {
      Terminal.complain("\(Program.program): \(error)")
      return isMisuse(error) ? .misuse : .failure
    }
  }

  private func isMisuse(_ error: any Error) -> Bool {
    switch error {
    case let error as KafkaError: error.code == .invalidConfiguration
    case let error as HTTPServerError: error.code != .listen
    case let error as AccountStoreError:
      [.notMigrated, .newerVersion, .wrongMasterKey].contains(error.code)
    default: false
    }
  }

  /// Runs the service; the first signal drains it, the second ends the process.
  @Loop
  private func serve(
    _ configuration: ConsumerConfiguration<Program>, _ store: any AccountStore, _ logger: Logger
  ) async -> Result<ExitCode, any Error> {
    do {
      let running = try await RunningConsumer(configuration, store: store, registry: MetricsRegistry(), logger: logger)
      let signals = try Signals([SIGINT, SIGTERM])
      let limit = Deadline()
      defer { limit.invalidate() }
      let failure = await withTaskGroup(of: KafkaError?.self) { group in
        group.addTask(executorPreference: Loop.executor) {
          let failure = await running.run()
          await signals.close()
          return failure
        }
        if await signals.next() != nil {
          group.addTask(executorPreference: Loop.executor) {
            if await signals.next() != nil { _exit(ExitCode.failure.rawValue) }
            return nil
          }
          limit.onPass {
            logger.error("the time to drain is over: the next process does what is not done, or not committed")
            _exit(ExitCode.failure.rawValue)
          }
          limit.set(.now + configuration.consumer.drainDeadline + Self.grace)
          await running.drain(within: configuration.consumer.drainDeadline)
        }
        var failure: KafkaError?
        while let result = await group.next() { failure = failure ?? result }
        return failure
      }
      if let failure { throw failure }
      return .success(.success)
    } catch {
      return .failure(error)
    }
  }
}
