import AccountServices
import AccountStore
import Configuration
import EventLoop
import Kafka

extension ConfigurationOptions {
  /// Runs `body` with how to reach the cluster that the configuration names; what goes wrong is said on standard error,
  /// and the exit code tells a script whose fault it is.
  @Loop
  func withKafka(
    _ body: @Loop (KafkaConfiguration, @escaping KafkaLog) async throws(KafkaError) -> ExitCode
  ) async -> ExitCode {
    let configuration: KafkaConfiguration
    do { configuration = try kafka() } catch {
      Terminal.complain(error is ConfigurationError ? "\(error)" : "siwa: kafka: \(error)")
      return .misuse
    }
    do throws(KafkaError) { return try await body(configuration, Self.kafkaLog) } catch {
      return ExitCode(complainingOf: error)
    }
  }

  /// How to reach the cluster that the configuration names. Throws `ConfigurationError`, or what librdkafka says of it.
  func kafka() throws -> KafkaConfiguration {
    let sources = sources(environment: ConfigurationSources.processEnvironment)
    return try ConfigurationSchema.siwa.load(KafkaSettings.self, from: sources).value.configuration(of: "siwa")
  }

  /// Says on standard error what librdkafka says of its errors.
  static let kafkaLog: KafkaLog = { line in
    if line.level == .error { Terminal.complain("siwa: \(line.text)") }
  }
}

extension ExitCode {
  /// Says on standard error what is wrong with Kafka, and tells a script whose fault it is.
  init(complainingOf error: KafkaError) {
    Terminal.complain("siwa: kafka: \(error.detail)")
    switch error.code {
    case .invalidConfiguration: self = .misuse
    case .brokerUnavailable, .timedOut, .authenticationFailed, .notAuthorized, .unsupported: self = .unreachable
    default: self = .failure
    }
  }

  /// Says on standard error what went wrong, and tells a script whose fault it is.
  init(complainingOf error: any Error) {
    switch error {
    case let error as KafkaError: self.init(complainingOf: error)
    case let error as ConfigurationError:
      Terminal.complain("\(error)")
      self = .misuse
    case let error as AccountStoreError:
      Terminal.complain("siwa: \(error)")
      self = error.code == .unavailable ? .unreachable : .misuse
    default:
      Terminal.complain("siwa: \(error)")
      self = .failure
    }
  }
}
