import AccountEvents
import AccountStore
import EventLoop
import Telemetry

/// Looks after exchanges that were broken off: Apple may have granted a token that nobody got.
///
/// Nobody can use such a token, and nobody can revoke it by itself. But whatever token of the same person and app is revoked
/// ends the whole authorization, that one included. So an exchange is over once a token of the person for the app is held that
/// was good after it: one that was granted then, or that Apple has called good since. Where none is within a day, it is said
/// as an error, and counted.
@Loop
final class ExchangeWatch {
  private static let pulse = Duration.seconds(60)
  /// How long a sign-in may be under way, wherever: while a token is offered to the store for an hour, it is.
  private static let grace = Duration.seconds(4200)
  /// How long it may take the person to come again.
  private static let limit = Duration.seconds(23 * 3600)
  /// How long where an older token is held, which Apple is asked about once a day.
  private static let limitOfHeld = Duration.seconds(25 * 3600)
  /// How far Apple's clock, which tells whole seconds, may be behind ours.
  private static let tolerance = Duration.seconds(60)
  private static let page = 1000

  private let store: any AccountStore
  private let metrics: AccountsMetrics
  private let logger: Logger
  private let now: @Sendable () -> Timestamp

  /// A watch over a store.
  init(
    _ store: any AccountStore, metrics: AccountsMetrics, logger: Logger, now: @escaping @Sendable () -> Timestamp
  ) { (self.store, self.metrics, self.logger, self.now) = (store, metrics, logger, now) }

  /// Looks every minute until the task is cancelled.
  func run() async {
    while !Task.isCancelled {
      do throws(AccountStoreError) { try await look() } catch {
        logger.warning("broken exchanges could not be looked after", ["store.error": .string(error.code.rawValue)])
      }
      do { try await Loop.sleep(for: Self.pulse) } catch { return }
    }
  }

  /// Looks once.
  func look() async throws(AccountStoreError) {
    for exchange in try await store.unfinishedExchanges(before: now() - Self.grace, limit: Self.page) {
      let held = try await held(exchange)
      if let held, max(held.time, held.validatedAt ?? held.time) + Self.tolerance > exchange.begunAt {
        logger.info("an exchange that was broken off is covered by a token that is held", metadata(of: exchange))
      } else if exchange.begunAt + (held == nil ? Self.limit : Self.limitOfHeld) <= now() {
        metrics.unresolved.increment()
        logger.error(
          "an exchange was broken off, and nobody knows whether Apple granted a token", metadata(of: exchange))
      } else {
        continue
      }
      // Its code is not sent again: who repeats the request is told to begin again.
      try await store.end(exchange, as: .lost)
    }
  }

  private func held(_ exchange: CodeExchange) async throws(AccountStoreError) -> AccountProfile.SignIn? {
    guard case .known(let profile) = try await store.knowledge(of: exchange.account) else { return nil }
    return profile.signIns.first { $0.client == exchange.client }
  }

  private func metadata(of exchange: CodeExchange) -> LogMetadata {
    var metadata: LogMetadata = [
      "client": .describing(exchange.client), "exchange.begun": .describing(exchange.begunAt),
    ]
    if let hash = AccountHash(exchange.account.bytes).flatMap({ store.newest(of: $0) }) {
      metadata.set("account.hash", .describing(hash))
    }
    return metadata
  }
}
