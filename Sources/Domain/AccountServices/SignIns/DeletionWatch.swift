import AccountEvents
import AccountStore
import EventLoop
import Telemetry

/// Says again and again how many deletions that people have asked for are not over, and since when the first is not.
///
/// Nobody asks again for one whose event is on the topic. Where that was lost before the token revoker and the data eraser
/// had read it, as retention was faster or the topic was made anew, nothing but its age says so.
@Loop
final class DeletionWatch {
  private static let pulse = Duration.seconds(60)
  /// Further ones are not counted.
  private static let most = 10_000
  private static let states: [DeletionProgress.State] = [.requested, .revoking, .erasing]

  private let store: any AccountStore
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let open: [DeletionProgress.State: Gauge]
  private let oldest: [DeletionProgress.State: Gauge]
  private var isFailing = false

  /// A watch over this store.
  init(
    _ store: any AccountStore, registry: MetricsRegistry, logger: Logger, now: @escaping @Sendable () -> Timestamp
  ) {
    (self.store, self.logger, self.now) = (store, logger, now)
    func gauges(_ name: String, _ help: String) -> [DeletionProgress.State: Gauge] {
      Dictionary(
        uniqueKeysWithValues: Self.states.map { state in
          (state, registry.gauge(name, help, labels: ["state": state.rawValue]))
        })
    }
    open = gauges(
      "siwa_accounts_deletions_open",
      "Deletions that people have asked for and that are not over, by how far they are; the same in every process.")
    oldest = gauges(
      "siwa_accounts_deletions_oldest_seconds",
      "How long ago the first of them was asked for, by how far they are. Alarm above a day.")
  }

  /// Looks until the task is cancelled.
  func run() async {
    while !Task.isCancelled {
      await look()
      do { try await Loop.sleep(for: Self.pulse) } catch { return }
    }
  }

  /// Asks the store once.
  func look() async {
    do throws(AccountStoreError) {
      let all = try await store.openDeletions(.tokenRevoker, .dataEraser, limit: Self.most)
      let byState = Dictionary(grouping: all, by: \.state)
      for state in Self.states {
        let some = byState[state] ?? []
        open[state]?.set(Double(some.count))
        let age = some.first.map { now() - $0.requestedAt } ?? .zero
        oldest[state]?.set(max(0, Double(age.components.seconds)))
      }
      isFailing = false
    } catch {
      // Whether the store answers, the service says itself; a question that fails alone is said once.
      if !isFailing {
        logger.warning("nobody knows which deletions are open", ["store.error": .string(error.code.rawValue)])
      }
      isFailing = true
    }
  }
}

extension OpenDeletion {
  /// The one word, as `DeletionProgress` has it.
  fileprivate var state: DeletionProgress.State { isRevoked ? .erasing : isPublished ? .revoking : .requested }
}
