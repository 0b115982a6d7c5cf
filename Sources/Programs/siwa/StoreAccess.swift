import AccountServices
import AccountStore
import Configuration
import EventLoop
import Synchronization

/// What all commands on the store do: they read where it is, and say what went wrong.
enum StoreAccess {
  /// Runs `body` with what an operator does with a store, opened or not.
  @Loop
  static func run(
    _ options: ConfigurationOptions,
    _ body: @Loop (any AccountStoreAdministration) async throws(AccountStoreError) -> ExitCode
  ) async -> ExitCode {
    await with(options, failure: .failure) { settings throws(AccountStoreError) in
      try await body(try settings.administration())
    }
  }

  /// Runs `body` with the open store, as a program uses it. Its answer is a code of its own: a store that cannot be used
  /// has to be made or changed first.
  @Loop
  static func open(
    _ options: ConfigurationOptions, _ body: @Loop (any AccountStore) async throws(AccountStoreError) -> ExitCode
  ) async -> ExitCode {
    await with(options, failure: .misuse) { settings throws(AccountStoreError) in
      let store = try await settings.open()
      do throws(AccountStoreError) {
        let exit = try await body(store)
        await store.close()
        return exit
      } catch {
        await store.close()
        throw error
      }
    }
  }

  @Loop
  private static func with(
    _ options: ConfigurationOptions, failure: ExitCode,
    _ body: @Loop (StoreSettings) async throws(AccountStoreError) -> ExitCode
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
      return try await body(settings)
    } catch {
      Terminal.complain("siwa: \(error)")
      return error.code == .unavailable ? .unreachable : failure
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
    Store     \(place)
    Accounts  \(report.accounts)
    Tokens    \(report.tokens)
    Mail      \(report.relays)
    Settled   \(report.settled)\(report.isMoving ? "\nHash key  a rotation is under way: siwa store rotate-hash-key" : "")
    \(report.findings.isEmpty ? "Whole" : report.findings.count == 1 ? "1 finding" : "\(report.findings.count) findings")
    """
  }
}
