import Glibc

/// What a command tells people: results to standard output, what is wrong to standard error.
///
/// A line at a time and at once, also where the output is a file or a pipe.
public enum Terminal {
  /// Writes a line, or several, to standard output. False where nobody takes it any more: whoever says much may stop.
  @discardableResult
  public static func say(_ text: String) -> Bool { write(text + "\n", to: STDOUT_FILENO) }

  /// Writes a line, or several, to standard error.
  public static func complain(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

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

  @discardableResult
  static func write(_ text: String, to descriptor: CInt) -> Bool {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno != EINTR { return false }
      rest = rest.dropFirst(max(0, count))
    }
    return true
  }
}
