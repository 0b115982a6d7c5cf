import AccountEvents
import AccountStore
import EventLoop
import Synchronization
import Telemetry

/// The account store's keyed hash as of late: the store's hashing key may be replaced while the program runs.
final class CurrentHashing: Sendable {
  private static let pause = Duration.seconds(60)

  private let hashing: Mutex<AccountHashing>

  init(_ hashing: AccountHashing) { self.hashing = Mutex(hashing) }

  /// The hash that stands for the account.
  func hash(of account: Account) -> AccountHash { hashing.withLock { $0 }.hash(of: account) }

  /// Reads it anew from time to time, until the task is cancelled.
  @Loop
  func follow(_ read: @Loop () async throws(AccountStoreError) -> AccountHashing, _ logger: Logger) async {
    while true {
      do { try await Loop.sleep(for: Self.pause) } catch { return }
      do throws(AccountStoreError) {
        let new = try await read()
        hashing.withLock { $0 = new }
      } catch {
        logger.warning("the account store's hashing key could not be read again", ["cause": .describing(error)])
      }
    }
  }
}
