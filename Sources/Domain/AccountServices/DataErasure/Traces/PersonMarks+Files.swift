import EventLoop
import Glibc

extension PersonMarks {
  /// What is read of a file at once.
  private static let chunk = 1 << 20

  /// Whether a regular file holds the `sub`, which may be of any size; false of anything else. It blocks while it reads.
  func areIn(file path: String) throws(SystemError) -> Bool {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    guard descriptor >= 0 else { throw .current }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .current }
    guard status.st_mode & S_IFMT == S_IFREG else { return false }
    var rest: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: Self.chunk)
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      guard count >= 0 else { throw .current }
      if count == 0 { return false }
      rest.append(contentsOf: buffer.prefix(count))
      if areIn(rest) { return true }
      rest.removeFirst(max(0, rest.count - overlap))
    }
  }
}
