package import AccountStore
package import EventLoop
package import Telemetry

/// Says again and again how many erasures have failed and are not done, as the store has it: whichever process works on
/// them, and whether any does.
@Loop
package final class ErasureWatch {
  /// A count looks at what is open alone.
  private static let pulse = Duration.seconds(10)

  private let store: any AccountStore
  private let incomplete: Gauge
  private let inProgress: Gauge
  private let logger: Logger
  private var watching: Task<Void, Never>?
  private var isEnding = false
  private var isFailing = false

  /// A watch over this store.
  package init(_ store: any AccountStore, registry: MetricsRegistry, logger: Logger) {
    (self.store, self.logger) = (store, logger)
    incomplete = registry.gauge(
      "siwa_erasures_incomplete",
      "Erasures in the store of which an attempt has failed and something is left; the same in every process. Alarm where it stays above 0."
    )
    inProgress = registry.gauge(
      "siwa_erasures_in_progress",
      "Erasures in the store that a service is at work on, by its own words (202); the same in every process.")
  }

  /// Looks until `end` is called.
  package func run() async {
    let watching = Task(executorPreference: Loop.executor) { await self.watch() }
    self.watching = watching
    if isEnding { watching.cancel() }
    await watching.value
  }

  /// Looks no more.
  package func end() {
    isEnding = true
    watching?.cancel()
  }

  private func watch() async {
    while !Task.isCancelled {
      await look()
      do { try await Loop.sleep(for: Self.pulse) } catch { return }
    }
  }

  /// Asks the store once.
  package func look() async {
    do throws(AccountStoreError) {
      incomplete.set(Double(try await store.incompleteErasures(by: .dataEraser)))
      inProgress.set(Double(try await store.erasuresInProgress(by: .dataEraser)))
      isFailing = false
    } catch {
      // Whether the store answers, the service says itself; a count that fails alone is said once.
      if !isFailing {
        logger.warning("nobody knows how many erasures are not done", ["store.error": .string(error.code.rawValue)])
      }
      isFailing = true
    }
  }
}
