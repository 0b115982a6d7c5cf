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
  /// Whether it says that it is at work.
  var isAtWork = false
  /// When it wants to be asked again then.
  var retryAfter: Duration?
  /// Whether it answers nobody, until `timeOut`.
  var isSilent = false
  private(set) var orders: [ErasureOrder] = []
  private var unanswered: [CheckedContinuation<Void, Never>] = []

  init(holding content: Int) { self.content = content }

  func count(_ order: ErasureOrder) async throws(ErasureFailure) -> Int? { content }

  func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    orders.append(order)
    do { try await meanwhile() } catch { throw ErasureFailure(.misconfigured, "\(error)") }
    if isSilent {
      await withCheckedContinuation { unanswered.append($0) }
      throw ErasureFailure(.unavailable, "no answer in time")
    }
    if let failure { throw failure }
    if isAtWork {
      return ErasureResult(.inProgress(retryAfter: retryAfter), affected: nil, found: nil, detail: "")
    }
    let affected = content
    content = 0
    return ErasureResult(.erased, affected: affected, found: 0, detail: "")
  }

  func check() async throws(ErasureFailure) {}

  /// How many wait for its answer.
  var unansweredCount: Int { unanswered.count }

  /// The deadline of all who wait for its answer passes.
  func timeOut() {
    let waiting = unanswered
    unanswered = []
    for continuation in waiting { continuation.resume() }
  }
}
