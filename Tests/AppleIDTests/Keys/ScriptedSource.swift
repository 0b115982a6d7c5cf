import AccountEvents
import AppleID
import EventLoop

/// A source of keys whose every fetch waits for what a test answers.
@Loop
final class ScriptedSource: AppleKeysSource {
  private(set) var fetches = 0
  private var pending: CheckedContinuation<Result<[UInt8], AppleKeysFailure>, Never>?
  /// What its clock says; nil where it does not say.
  var date: Timestamp?
  private var observer: CheckedContinuation<Void, Never>?

  nonisolated init() {}

  func fetch() async throws(AppleKeysFailure) -> AppleKeysAnswer {
    fetches += 1
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        pending = waiter
        observer?.resume()
        observer = nil
      }
    } onCancel: {
      Task { @Loop in answer(.failure(AppleKeysFailure(.unreachable, "cancelled"))) }
    }
    return AppleKeysAnswer(try result.get(), date: date)
  }

  /// Waits until a fetch is on its way.
  func untilAsked() async {
    await withCheckedContinuation { waiter in
      if pending != nil { return waiter.resume() }
      observer = waiter
    }
  }

  func answer(_ result: Result<[UInt8], AppleKeysFailure>) {
    pending?.resume(returning: result)
    pending = nil
  }
}
