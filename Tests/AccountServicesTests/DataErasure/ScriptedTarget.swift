import AccountEvents
import AccountServices
import EventLoop

/// A target that does as it is told, and remembers what it was asked.
@Loop
final class ScriptedTarget: ErasureTarget {
  /// How much it holds of everybody.
  var content: Int
  /// Why it refuses at the moment.
  var failure: ErasureFailure?
  /// What happens while it erases.
  var meanwhile: @Loop () async throws -> Void = {}
  private(set) var orders: [ErasureOrder] = []

  init(holding content: Int) { self.content = content }

  func count(_ account: Account) async throws(ErasureFailure) -> Int? { content }

  func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    orders.append(order)
    do { try await meanwhile() } catch { throw ErasureFailure(.misconfigured, "\(error)") }
    if let failure { throw failure }
    let affected = content
    content = 0
    return ErasureResult(.erased, affected: affected, found: 0, detail: "")
  }

  func check() async throws(ErasureFailure) {}
}
