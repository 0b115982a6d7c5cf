package import AccountStore
package import EventLoop
package import Telemetry

/// Says again and again how large the store is.
@Loop
package final class StoreWatch {
  /// It grows slowly.
  private static let pulse = Duration.seconds(60)

  private let store: any AccountStore
  private let size: Gauge
  private let logger: Logger
  private var isFailing = false

  /// A watch over this store.
  package init(_ store: any AccountStore, registry: MetricsRegistry, logger: Logger) {
    (self.store, self.logger) = (store, logger)
    size = registry.gauge(
      "siwa_store_bytes", "How much room the account store takes on its disk; the same in every process that uses it.")
  }

  /// Looks until the task is cancelled.
  package func run() async {
    while !Task.isCancelled {
      await look()
      do { try await Loop.sleep(for: Self.pulse) } catch { return }
    }
  }

  /// Asks the store once.
  package func look() async {
    do throws(AccountStoreError) {
      size.set(Double(try await store.size()))
      isFailing = false
    } catch {
      // Whether the store answers, the service says itself; a question that fails alone is said once.
      if !isFailing {
        logger.warning("nobody knows how large the store is", ["store.error": .string(error.code.rawValue)])
      }
      isFailing = true
    }
  }
}
