package import AccountEvents
import EventLoop
import Glibc
package import Kafka

/// Writes a file of records that only this user can read. There is none of its name before it is whole and on the disk,
/// and one that is there already is not replaced.
///
/// Its calls block: it is made for a command that has nothing else to do.
package final class RecordFileWriter {
  /// So much is gathered before it is written.
  private static let room = 1 << 18

  private let path: String
  /// What it is called until it is whole.
  private let draft: String
  private var descriptor: CInt
  private var waiting: [UInt8] = []
  private var records: Int64 = 0

  /// Begins a file of the topic's records.
  package init(_ path: String, of topic: Topic, at time: Timestamp) throws(RecordFileError) {
    (self.path, draft) = (path, "\(path).\(getpid()).part")
    guard unsafe access(path, F_OK) != 0 else { throw RecordFileError(path, "is there already") }
    unsafe unlink(draft)
    descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw RecordFileError(path, "\(SystemError.current)") }
    append(RecordLine.beginning(of: topic, at: time))
  }

  deinit { abandon() }

  /// Adds records behind the others.
  package func append(_ some: [ConsumedRecord]) throws(RecordFileError) {
    for record in some {
      append(RecordLine.record(record))
      if waiting.count >= Self.room { try write() }
    }
    records += Int64(some.count)
  }

  /// Ends the file, and returns once it would survive a power failure.
  package func finish() throws(RecordFileError) {
    append(RecordLine.end(records: records))
    try write()
    guard fsync(descriptor) == 0 else { throw RecordFileError(path, "\(SystemError.current)") }
    // Unlike rename, it replaces nothing.
    guard unsafe link(draft, path) == 0 else {
      throw RecordFileError(path, errno == EEXIST ? "is there already" : "\(SystemError.current)")
    }
    abandon()
    let slash = path.lastIndex(of: "/")
    let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let directory = unsafe open(parent, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    defer { if directory >= 0 { close(directory) } }
    guard directory >= 0, fsync(directory) == 0 else { throw RecordFileError(path, "\(SystemError.current)") }
  }

  /// Takes the draft away: what was not finished is gone.
  private func abandon() {
    if descriptor < 0 { return }
    unsafe unlink(draft)
    close(descriptor)
    descriptor = -1
  }

  private func append(_ line: [UInt8]) {
    waiting.append(contentsOf: line)
    waiting.append(UInt8(ascii: "\n"))
  }

  private func write() throws(RecordFileError) {
    var rest = waiting[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno != EINTR { throw RecordFileError(path, "\(SystemError.current)") }
      rest = rest.dropFirst(max(0, count))
    }
    waiting.removeAll(keepingCapacity: true)
  }
}
