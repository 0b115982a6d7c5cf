package import EventLoop
import Glibc

/// A file that was opened for reading.
package struct ReadableFile: ~Copyable {
  private let descriptor: CInt
  private let mode: mode_t
  private let owner: uid_t

  /// Opens the file at `path`; a directory is refused.
  package init(_ path: String) throws(SystemError) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .current }
    var status = stat()
    let result = unsafe fstat(descriptor, &status)
    guard result == 0, status.st_mode & S_IFMT != S_IFDIR else {
      let error = result == 0 ? SystemError(code: EISDIR) : .current
      close(descriptor)
      throw error
    }
    (self.descriptor, mode, owner) = (descriptor, status.st_mode, status.st_uid)
  }

  deinit { close(descriptor) }

  var isReadableByEveryone: Bool { mode & S_IROTH != 0 }

  /// Whether nobody can read or write it but its user: this one alone; or, where it is root's and not ours, the group to
  /// which it was given to read (as Kubernetes hands secrets to a program).
  package var isPrivate: Bool {
    mode & 0o077 == 0 ? [0, geteuid()].contains(owner) : owner == 0 && geteuid() != 0 && mode & 0o037 == 0
  }

  /// The file's content; an error if there is more of it.
  package func bytes(upTo limit: Int) throws(SystemError) -> [UInt8] {
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
