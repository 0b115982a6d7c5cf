import Glibc

/// A small file that is replaced as a whole: whatever fails and whenever, a reader finds the old bytes or the new.
///
/// Its calls block, and belong on a thread of their own.
package struct DurableFile: Sendable {
  /// Why a file is not read.
  package enum Fault: Error, CustomStringConvertible {
    /// The operating system failed.
    case system(SystemError)
    /// More bytes than allowed.
    case tooLarge
    /// No regular file, or somebody else could have written it.
    case notOurs

    /// Says why.
    package var description: String {
      switch self {
      case .system(let error): "\(error)"
      case .tooLarge: "the file is too large"
      case .notOurs: "no regular file, or one that another user can write"
      }
    }
  }

  let path: String

  /// The file at `path`.
  package init(path: String) { self.path = path }

  /// The bytes; nil where there is no such file.
  package func read(upTo limit: Int) throws(Fault) -> [UInt8]? {
    // Non-blocking: opening a pipe of that name would wait for its writer.
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw .system(.current)
    }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .system(.current) }
    guard status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o022 == 0, [0, geteuid()].contains(status.st_uid)
    else { throw .notOurs }
    guard status.st_size <= limit else { throw .tooLarge }
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    var count = 0
    while count < bytes.count {
      let read = unsafe bytes.withUnsafeMutableBytes {
        unsafe Glibc.read(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
      }
      if read == 0 { return Array(bytes.prefix(count)) }
      if read > 0 { count += read } else if errno != EINTR { throw .system(.current) }
    }
    throw .tooLarge
  }

  /// Replaces the bytes, and returns once they would survive a power failure. Only this user may read them.
  package func replace(with bytes: [UInt8]) throws(SystemError) {
    try put(bytes) { draft in unsafe rename(draft, path) }
  }

  /// The same with a new file: one that is there already stays as it is, and that is an error.
  package func create(with bytes: [UInt8]) throws(SystemError) {
    // Unlike rename, it replaces nothing.
    try put(bytes) { draft in unsafe link(draft, path) }
  }

  /// Writes a draft, which `name` gives the name of the file.
  private func put(_ bytes: [UInt8], name: (_ draft: String) -> CInt) throws(SystemError) {
    let slash = path.lastIndex(of: "/")
    let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    // Before the file has its name: what fails leaves none.
    let directory = unsafe open(parent, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard directory >= 0 else { throw .current }
    defer { close(directory) }
    // A random name keeps writers apart; the number of a process would not, as containers that share a folder have the same
    // ones. A crash leaves its draft behind.
    let draft = "\(path).\(String(UInt64.random(in: 0...UInt64.max), radix: 36)).new"
    let descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .current }
    defer { close(descriptor) }
    defer { unsafe unlink(draft) }
    try write(bytes, to: descriptor)
    guard name(draft) == 0, fsync(directory) == 0 else { throw .current }
  }

  private func write(_ bytes: [UInt8], to descriptor: CInt) throws(SystemError) {
    var count = 0
    while count < bytes.count {
      let written = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.write(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
      }
      if written >= 0 { count += written } else if errno != EINTR { throw .current }
    }
    guard fsync(descriptor) == 0 else { throw .current }
  }
}
