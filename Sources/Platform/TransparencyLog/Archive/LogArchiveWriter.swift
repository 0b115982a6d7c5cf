import Glibc

/// Writes files one behind the other into a POSIX archive, which appears at its place when it is whole.
///
/// The same files in the same order make the same bytes. Its calls block, for as long as the disk takes.
package struct LogArchiveWriter: ~Copyable {
  /// So many bytes are written at once.
  private static let pageSize = 1 << 20

  /// Where the archive lies until it is whole.
  package let draft: String
  private let path: String
  private let descriptor: CInt
  private var page: [UInt8] = []
  private var isDone = false

  /// Begins an archive that is to appear at `path`, in place of a file that is there.
  package init(creating path: String) throws(LogError) {
    (self.path, draft) = (path, "\(path).\(getpid()).new")
    unsafe unlink(draft)
    descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .system(path) }
    page.reserveCapacity(Self.pageSize + EntryBundle.maximumByteCount)
  }

  deinit {
    close(descriptor)
    if !isDone { unsafe unlink(draft) }
  }

  /// Appends a file, whose name no other one has.
  package mutating func add(_ name: String, _ contents: [UInt8]) throws(LogError) {
    let header = TarHeader(name: name, size: contents.count)
    page += header.block
    page += contents
    page += [UInt8](repeating: 0, count: header.paddedSize - header.size)
    if page.count >= Self.pageSize { try write() }
  }

  /// Ends the archive, which is then whole and durable at `draft`.
  package mutating func finish() throws(LogError) {
    page += [UInt8](repeating: 0, count: 2 * TarHeader.blockSize)
    try write()
    guard fsync(descriptor) == 0 else { throw .system(path) }
  }

  /// Puts the archive, which has ended, into its place.
  package consuming func publish() throws(LogError) {
    guard unsafe rename(draft, path) == 0 else { throw .system(path) }
    isDone = true
  }

  private mutating func write() throws(LogError) {
    var count = 0
    while count < page.count {
      let written = unsafe page.withUnsafeBytes {
        unsafe Glibc.write(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
      }
      if written >= 0 { count += written } else if errno != EINTR { throw .system(path) }
    }
    page.removeAll(keepingCapacity: true)
  }
}
