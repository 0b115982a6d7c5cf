import Glibc

/// What a command tells people: results to standard output, what is wrong to standard error.
///
/// A line at a time and at once, also where the output is a file or a pipe.
public enum Terminal {
  /// Writes a line, or several, to standard output.
  public static func say(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }

  /// Writes a line, or several, to standard error.
  public static func complain(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

  static func write(_ text: String, to descriptor: CInt) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno != EINTR { return }
      rest = rest.dropFirst(max(0, count))
    }
  }
}
