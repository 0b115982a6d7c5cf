import EventLoop
import Glibc

/// A file that was opened for reading.
struct ReadableFile: ~Copyable {
  private let descriptor: CInt
  private let mode: mode_t

  init(_ path: String) throws(SystemError) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .current }
    var status = stat()
    let result = unsafe fstat(descriptor, &status)
    guard result == 0, status.st_mode & S_IFMT != S_IFDIR else {
      let error = result == 0 ? SystemError(code: EISDIR) : .current
      close(descriptor)
      throw error
    }
    (self.descriptor, mode) = (descriptor, status.st_mode)
  }

  deinit { close(descriptor) }

  var isReadableByEveryone: Bool { mode & S_IROTH != 0 }

  /// The file's content; an error if there is more of it.
  func bytes(upTo limit: Int) throws(SystemError) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = unsafe read(descriptor, &chunk, chunk.count)
      if count == 0 { return bytes }
      if count < 0 {
        if errno == EINTR { continue }
        throw .current
      }
      bytes += chunk[..<count]
      if bytes.count > limit { throw SystemError(code: EFBIG) }
    }
  }
}
