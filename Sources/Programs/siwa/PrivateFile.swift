import EventLoop
import Glibc

/// Files that only this user can read.
enum PrivateFile {
  /// Writes a new file, and returns once it is on the disk; one that is there already stays as it is, and that is an error.
  static func write(_ text: String, to path: String) throws(SystemError) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .current }
    defer { close(descriptor) }
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { throw .current }
      rest = rest.dropFirst(count)
    }
    guard fsync(descriptor) == 0 else { throw .current }
  }
}
