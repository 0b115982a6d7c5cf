import AccountStore
import Configuration
import EventLoop
import Telemetry

/// Reads the configuration, builds the consumer, and serves until a signal comes.
struct ConsumerCommand<Program: ConsumerProgram>: ServiceCommand {
  static var program: String { Program.program }
  static var schema: ConfigurationSchema { Program.schema }
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

  let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) { options = ConfigurationOptions(reading: &arguments) }

  static func serve(_ settings: ConsumerConfiguration<Program>, _ logger: Logger) async throws {
    try await settings.store.use { store in
      let running = try await RunningConsumer(settings, store: store, registry: MetricsRegistry(), logger: logger)
      // Telling Kafka in the end would take librdkafka a minute, where it does not answer.
      let life = ServiceLife(serve: { await running.run() }, drain: { await running.drain(within: $0) })
      try await life.run(
        draining: settings.consumer.drainDeadline,
        lateness: "the time to drain is over: the next process does what is not done, or not committed", logger)
    }
  }
}
