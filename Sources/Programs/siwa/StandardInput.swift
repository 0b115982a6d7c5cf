import AccountServices
import EventLoop
import Glibc

/// The standard input, line by line, read on a thread of its own: the store is used meanwhile.
@Loop
final class StandardInput {
  /// How many lines were read.
  private(set) var count: Int64 = 0
  private let thread = BlockingThread(named: "standard input")
  private let reader: Reader

  /// No line has more bytes than that.
  init(longestLine limit: Int) { reader = Reader(limit) }

  /// Used by its thread alone.
  private final class Reader: @unchecked Sendable {
    private let lines: LineReader

    init(_ limit: Int) { lines = LineReader(STDIN_FILENO, limit: limit, mayLackLastEnd: true) }

    /// Waits for a line, and takes those that have come with it: who writes them slowly keeps none waiting.
    func next(_ limit: Int) -> Result<[[UInt8]], LineReader.Fault> {
      do throws(LineReader.Fault) {
        var some: [[UInt8]] = []
        while some.count < limit, some.isEmpty || lines.holdsLine, let line = try lines.next() { some.append(line) }
        return .success(some)
      } catch {
        return .failure(error)
      }
    }
  }

  /// Passes over lines.
  func skip(_ count: Int64) async throws(LineReader.Fault) {
    while self.count < count, try await next(Int(min(count - self.count, 1024))) != nil {}
  }

  /// At least one line and at most `limit`; nil at the end.
  func next(_ limit: Int) async throws(LineReader.Fault) -> [[UInt8]]? {
    let some = try await thread.run { [reader] in reader.next(limit) }.get()
    count += Int64(some.count)
    return some.isEmpty ? nil : some
  }
}

extension LineReader.Fault {
  /// What is wrong with the line.
  func words(limit: Int) -> String {
    switch self {
    case .tooLong: "longer than \(limit) bytes"
    case .cutOff: "its end is missing"
    case .system(let error): "\(error)"
    }
  }
}
