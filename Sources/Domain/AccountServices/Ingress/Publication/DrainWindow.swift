import EventLoop

/// How many records the drain has on their way at once.
///
/// What a log and a disk cost is counted in requests and syncs, so this decides how fast the drain is. But what is on its
/// way when the process is killed may come twice. So it begins with few; each record that is through makes room for one
/// more, and one that the log does not take has it begin anew. A process that is killed early has little under way, and
/// one that drains for a second has all that is good for its pace.
@Loop
final class DrainWindow {
  /// How many it begins with.
  private static let least = 64
  /// How many they are at most: with 256 a request to a broker had four records, with 1024 it has fifteen
  /// (`Tests/Benchmarks/Sources/drain`). More would keep new records waiting behind them.
  private static let most = 1024

  /// How many may be on their way.
  private(set) var width = least
  private var inside = 0
  private var waiter: CheckedContinuation<Void, Never>?

  /// Waits until fewer than may be are on their way. One at a time waits.
  func enter() async {
    repeat {
      await withCheckedContinuation { continuation in
        if inside < width { return continuation.resume() }
        waiter = continuation
      }
    } while inside >= width
    inside += 1
  }

  /// A record is no longer on its way.
  func leave() {
    inside -= 1
    wake()
  }

  /// A record is on the log, and durably gone from the spool.
  func widen() {
    width = min(width + 1, Self.most)
    wake()
  }

  /// The log did not take a record.
  func narrow() { width = Self.least }

  private func wake() {
    waiter?.resume()
    waiter = nil
  }
}
