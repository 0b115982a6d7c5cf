import Configuration
import EventLoop
import Glibc

/// What happens to something long when somebody interrupts it.
enum Interruption {
  /// Runs `body`. The first SIGINT or SIGTERM meanwhile calls `stop`, which is to end it in good order; the second ends
  /// the process.
  @Loop
  static func stopping<Value>(
    by stop: @escaping @Loop @Sendable () async -> Void, _ body: @Loop () async throws -> Value
  ) async throws -> Value {
    let signals = try Signals([SIGINT, SIGTERM])
    let watch = Task(executorPreference: Loop.executor) { await obey(signals, stop) }
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    signals.close()
    await watch.value
    return try result.get()
  }

  @Loop
  private static func obey(_ signals: Signals, _ stop: @Loop @Sendable () async -> Void) async {
    guard await signals.next() != nil else { return }
    await stop()
    if await signals.next() != nil { _exit(ExitCode.failure.rawValue) }
  }
}

/// A command that a signal stops in good order, as it waits for SIGINT and SIGTERM itself. Any other one simply ends: what
/// it has done is done, as after a kill.
protocol StoppedInOrder: Command {}

extension DevCommand: StoppedInOrder {}
extension ReplayCommand: StoppedInOrder {}
extension SimulateCommand: StoppedInOrder {}
