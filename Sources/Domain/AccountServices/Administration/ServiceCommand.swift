import AccountStore
package import Configuration
package import EventLoop
import Glibc
import HTTPServer
import Kafka
package import Telemetry

/// What a program that serves reads at start.
package protocol ServiceConfiguration: Configurable {
  /// What is logged and how.
  var log: LogSettings { get }
}

/// A program that serves: it reads the configuration, builds its service, and has that run until a signal comes.
package protocol ServiceCommand: Command {
  associatedtype Settings: ServiceConfiguration

  /// The name of the program.
  static var program: String { get }
  /// The settings of all programs, this one among them.
  static var schema: ConfigurationSchema { get }
  /// What the command line says of the configuration.
  var options: ConfigurationOptions { get }

  /// Builds the service and has it run, by `ServiceLife.run`.
  @Loop
  static func serve(_ settings: Settings, _ logger: Logger) async throws
}

extension ServiceCommand {
  /// The command has no name of its own.
  package static var name: String { "" }
  /// All settings.
  package static var schema: ConfigurationSchema { .siwa }

  /// Runs the program and ends the process.
  package static func main() {
    Signals.block([SIGHUP, SIGINT, SIGTERM])
    CoreDumps.forbid()
    let words = Array(CommandLine.arguments.dropFirst())
    let program = CommandLineProgram(program, Self.self)
    ProcessEnd.now(with: Loop.run { await program.run(words).rawValue })
  }

  /// Serves.
  package func run() async -> ExitCode { await serve() }

  @Loop
  private func serve() async -> ExitCode {
    do {
      let loaded = try Self.schema.load(
        Settings.self, from: options.sources(environment: ConfigurationSources.processEnvironment))
      let logger = Logger(level: loaded.value.log.level, format: loaded.value.log.format)
      for warning in loaded.warnings { logger.warning("configuration", ["warning": .describing(warning)]) }
      try await Self.serve(loaded.value, logger)
      return .success
    } catch let faults as ConfigurationError {
      Terminal.complain("\(faults)")
      return .misuse
    } catch let error as KafkaError where error.code == .invalidConfiguration {
      Terminal.complain("\(Self.program): kafka: \(error.detail)")
      return .misuse
    } catch {
      Terminal.complain("\(Self.program): \(error)")
      return isMisuse(error) ? .misuse : .failure
    }
  }

  /// Whether the configuration, or the store, has to change before another start can end otherwise.
  private func isMisuse(_ error: any Error) -> Bool {
    switch error {
    case let error as HTTPServerError: error.code != .listen
    case let error as AccountStoreError: [.notMigrated, .newerVersion, .wrongMasterKey].contains(error.code)
    default: false
    }
  }
}

/// What a program runs, which nothing but a signal ends.
@Loop
package protocol Service: AnyObject, Sendable {
  /// Serves until `drain` has ended.
  func run() async
  /// Ends in good order, within `patience`.
  func drain(within patience: Duration) async
  /// Takes a certificate that was replaced, without waiting for the next look at it.
  func renewCertificate()
}

/// What a service does between its start and its end.
@Loop
package struct ServiceLife {
  /// How long a drain may take beyond what it was given, where nothing of it answers any more.
  private static let grace = Duration.seconds(2)

  /// Serves until it is drained, or cannot go on: then it says why.
  let serve: @Loop @Sendable () async -> (any Error)?
  /// Ends in good order, within a time.
  let drain: @Loop @Sendable (Duration) async -> Void
  /// Takes a certificate that was replaced, at once.
  let renewCertificate: @Loop @Sendable () -> Void

  /// A service from what it does.
  package init(
    serve: @escaping @Loop @Sendable () async -> (any Error)?,
    drain: @escaping @Loop @Sendable (Duration) async -> Void,
    renewCertificate: @escaping @Loop @Sendable () -> Void = {}
  ) { (self.serve, self.drain, self.renewCertificate) = (serve, drain, renewCertificate) }

  /// The life of a service.
  package init(_ service: some Service) {
    self.init(
      serve: {
        await service.run()
        return nil
      }, drain: { await service.drain(within: $0) }, renewCertificate: { service.renewCertificate() })
  }

  /// Runs the service. SIGTERM or SIGINT drains it within `patience`, and a second one ends the process; so does what takes
  /// longer, which is logged as `lateness`: nil where the drain itself ends in time. A drain that serves on as a lame duck
  /// first has that time besides. SIGHUP renews the certificate. Throws what kept the service from going on.
  package func run(
    draining patience: Duration, after lameDuck: Duration = .zero, lateness: StaticString?, _ logger: Logger
  ) async throws {
    let signals = try Signals([SIGINT, SIGTERM])
    let renewals = try Signals([SIGHUP])
    let limit = Deadline()
    defer { limit.invalidate() }
    let failure = await withTaskGroup(of: (any Error)?.self) { group in
      group.addTask(executorPreference: Loop.executor) {
        let failure = await serve()
        // Nobody has to tell it to end any more.
        if failure != nil { await signals.close() }
        return failure
      }
      group.addTask(executorPreference: Loop.executor) {
        while await renewals.next() != nil { await renewCertificate() }
        return nil
      }
      if await signals.next() != nil {
        group.addTask(executorPreference: Loop.executor) {
          if await signals.next() != nil { _exit(ExitCode.failure.rawValue) }
          return nil
        }
        if let lateness {
          limit.onPass {
            logger.error(lateness)
            _exit(ExitCode.failure.rawValue)
          }
          limit.set(.now + lameDuck + patience + Self.grace)
        }
        await drain(patience)
      }
      signals.close()
      renewals.close()
      var failure: (any Error)?
      while let result = await group.next() { failure = failure ?? result }
      return failure
    }
    if let failure { throw failure }
  }
}
