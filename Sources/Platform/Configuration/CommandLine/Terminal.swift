import EventLoop
import Glibc
import Synchronization

/// What a command tells people: results to standard output, what is wrong to standard error.
///
/// A line at a time and at once, also where the output is a file or a pipe.
public enum Terminal {
  private static let firstFailure = Mutex<SystemError?>(nil)

  /// Why something that was said could not be written; nil where all of it was.
  static var failure: SystemError? { firstFailure.withLock { $0 } }

  /// Writes a line, or several, to standard output. False where it cannot be written, or what came before it could not:
  /// whoever says much may stop. `CommandLineProgram` tells the caller of the program.
  @discardableResult
  public static func say(_ text: String, terminator: String = "\n") -> Bool {
    firstFailure.withLock { failure in
      // What comes after a gap would be taken for all there is.
      if failure == nil { failure = write(text + terminator, to: STDOUT_FILENO) }
      return failure == nil
    }
  }

  /// Writes a line, or several, to standard error.
  public static func complain(_ text: String, terminator: String = "\n") { write(text + terminator, to: STDERR_FILENO) }

  /// Writes to standard error over what this has written there before: a line that changes. `columns` is how long the line
  /// is at most; nothing is written where standard error is no terminal.
  public static func overwrite(_ text: String, columns: Int) {
    guard isWatched else { return }
    let line = String(text.prefix(columns))
    write("\r\(line)\(String(repeating: " ", count: columns - line.count))\r", to: STDERR_FILENO)
  }

  /// Whether somebody watches standard error on a terminal.
  public static var isWatched: Bool { isatty(STDERR_FILENO) == 1 }

  /// Whether somebody watches standard output on a terminal.
  public static var isRead: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Why not all of it was written; nil where it was.
  @discardableResult
  private static func write(_ text: String, to descriptor: CInt) -> SystemError? {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno != EINTR { return .current }
      rest = rest.dropFirst(max(0, count))
    }
    return nil
  }
}
