package import EventLoop
import Glibc

/// Reads a file or a pipe line by line, once, from its beginning to its end. Its calls block.
package final class LineReader {
  /// How much is read at once.
  private static let chunk = 1 << 18
  private static let newline = UInt8(ascii: "\n")

  /// Why there is no line.
  package enum Fault: Error, Sendable, Equatable {
    /// It is longer than the limit.
    case tooLong
    /// It has no end, and has to have one: what was read is all that there is.
    case cutOff
    /// The system cannot read.
    case system(SystemError)
  }

  private let descriptor: CInt
  private let limit: Int
  private let mayLackLastEnd: Bool
  /// What was read and not taken.
  private var waiting: [UInt8] = []
  private var position = 0

  /// A reader of the descriptor, which stays the caller's. No line has more than `limit` bytes. `mayLackLastEnd` says that
  /// the last line may end with the file.
  package init(_ descriptor: CInt, limit: Int, mayLackLastEnd: Bool) {
    (self.descriptor, self.limit, self.mayLackLastEnd) = (descriptor, limit, mayLackLastEnd)
  }

  /// Whether the next line is here already, so that `next` does not wait for it.
  package var holdsLine: Bool { waiting[position...].contains(Self.newline) }

  /// The next line without its end; nil where there is none. Behind a fault nothing more can be read.
  package func next() throws(Fault) -> [UInt8]? {
    var searched = position
    while true {
      if let end = waiting[searched...].firstIndex(of: Self.newline) {
        defer { position = end + 1 }
        return Array(waiting[position..<end])
      }
      searched = waiting.count
      guard searched - position <= limit else { throw .tooLong }
      waiting.removeFirst(position)
      (searched, position) = (searched - position, 0)
      guard try readMore() else {
        if waiting.isEmpty { return nil }
        guard mayLackLastEnd else { throw .cutOff }
        defer { waiting = [] }
        return waiting
      }
    }
  }

  private func readMore() throws(Fault) -> Bool {
    var chunk = [UInt8](repeating: 0, count: Self.chunk)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        throw .system(.current)
      }
      waiting.append(contentsOf: chunk.prefix(count))
      return count > 0
    }
  }
}
