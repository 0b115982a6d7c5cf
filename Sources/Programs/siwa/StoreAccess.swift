import AccountServices
import AccountStore
import Configuration
import EventLoop
import Synchronization

/// What all commands on the store do: they read where it is, and say what went wrong.
enum StoreAccess {
  static func run(
    _ options: ConfigurationOptions,
    _ body: (any AccountStoreAdministration) async throws(AccountStoreError) -> ExitCode
  ) async -> ExitCode {
    let settings: StoreSettings
    do throws(ConfigurationError) {
      let sources = options.sources(environment: ConfigurationSources.processEnvironment)
      settings = try ConfigurationSchema.siwa.load(StoreSettings.self, from: sources).value
    } catch {
      Terminal.complain("\(error)")
      return .misuse
    }
    do throws(AccountStoreError) {
      return try await body(try settings.administration())
    } catch {
      Terminal.complain("siwa: \(error)")
      return error.code == .unavailable ? .unreachable : .failure
    }
  }

  /// Says on standard error how far something long is: at most a line a second.
  static func progress() -> @Sendable (StoreProgress) -> Void {
    let said = Mutex(MonotonicTime.now)
    return { progress in
      let now = MonotonicTime.now
      let isDue = said.withLock { last in
        guard now - last >= .seconds(1) else { return false }
        last = now
        return true
      }
      if isDue { Terminal.complain("\(progress.stage.rawValue): \(progress.done) of \(progress.total)") }
    }
  }

  static func text(_ report: StoreReport, _ place: String) -> String {
    """
    Store          \(place)
    Accounts       \(report.accounts)
    Tokens         \(report.tokens)
    Mail           \(report.relays)
    Settled        \(report.settled)
    Announcements  \(report.announcements)
    \(report.findings.isEmpty ? "Whole" : report.findings.count == 1 ? "1 finding" : "\(report.findings.count) findings")
    """
  }
}
