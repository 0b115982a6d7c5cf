import CLinux
import Glibc

/// A log in a directory on disk.
///
/// Its calls block for as long as the disk takes, `read` too: a caller that must not wait runs them on a thread of its own.
/// Paths are taken as they are: one from outside has to be checked first (`TilePath`).
package struct LogDirectory: LogSource {
  /// The directory.
  package let path: String
  /// The directory, where it is open: names are looked up there rather than by the path.
  private let descriptor: CInt?

  /// The log in the directory at `path`.
  package init(_ path: String) { (self.path, descriptor) = (path, nil) }

  /// The log in a directory that is open for as long as it is read from.
  init(_ path: String, open descriptor: CInt) { (self.path, self.descriptor) = (path, descriptor) }

  /// The bytes of a resource; nil where it is not there.
  package func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]? {
    try contents(of: path, limit: limit)
  }

  /// The same without `async`.
  package func contents(of path: String, limit: Int) throws(LogError) -> [UInt8]? {
    // Non-blocking: opening a pipe of that name would wait for its writer.
    let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
    let descriptor =
      if let folder = self.descriptor { unsafe openat(folder, path, flags) } else {
        unsafe open("\(self.path)/\(path)", flags)
      }
    guard descriptor >= 0 else {
      if [ENOENT, ENOTDIR].contains(errno) { return nil }
      throw .system(path)
    }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .system(path) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw LogError(.failed, path, "no regular file") }
    guard status.st_size <= limit else { throw LogError(.tooLarge, path, "more than \(limit) bytes") }
    // A file that grows meanwhile is read as it was.
    let size = Int(status.st_size)
    var failure: LogError?
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      while count < size {
        let more = unsafe Glibc.read(descriptor, buffer.baseAddress?.advanced(by: count), size - count)
        if more > 0 {
          count += more
        } else if more == 0 {
          break
        } else if errno != EINTR {
          failure = .system(path)
          break
        }
      }
    }
    if let failure { throw failure }
    return bytes
  }
}

extension LogError {
  /// A call of the operating system that has just failed, as `errno` says.
  static func system(_ path: String) -> LogError {
    let code = errno
    var text = [CChar](repeating: 0, count: 128)
    let isKnown = unsafe clinux_strerror(code, &text, text.count) == 0
    let detail = isKnown ? String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : ""
    return LogError([ENOSPC, EDQUOT].contains(code) ? .full : .failed, path, "\(detail) (\(code))")
  }
}
