import Synchronization

/// Lets so many go on at once, those who came first before the others.
public final class Turns: Sendable {
  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  /// So many at once.
  public init(_ count: Int) { state = Mutex(State(free: count)) }

  /// Waits for a turn, which lasts until `giveBack`.
  public func take() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        guard state.free > 0 else {
          state.waiting.append(continuation)
          return false
        }
        state.free -= 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  /// Ends a turn.
  public func giveBack() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      if !state.waiting.isEmpty { return state.waiting.removeFirst() }
      state.free += 1
      return nil
    }
    next?.resume()
  }

  /// Runs `body` in a turn.
  public func taking<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
    await take()
    defer { giveBack() }
    return try await body()
  }
}
