import AccountServices
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
    do {
      let sources = sources(environment: ConfigurationSources.processEnvironment)
      let loaded = try ConfigurationSchema.siwa.load(KafkaSettings.self, from: sources)
      configuration = try loaded.value.configuration(of: "siwa")
    } catch {
      Terminal.complain(error is ConfigurationError ? "\(error)" : "siwa: kafka: \(error)")
      return .misuse
    }
    do throws(KafkaError) {
      return try await body(configuration) { line in
        if line.level == .error { Terminal.complain("siwa: \(line.text)") }
      }
    } catch {
      Terminal.complain("siwa: kafka: \(error.detail)")
      switch error.code {
      case .invalidConfiguration: return .misuse
      case .brokerUnavailable, .timedOut, .authenticationFailed, .notAuthorized, .unsupported: return .unreachable
      default: return .failure
      }
    }
  }
}
