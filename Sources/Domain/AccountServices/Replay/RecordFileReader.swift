import EventLoop
import Glibc
import JSON
package import Kafka

/// Reads a file of records, once, from its beginning to its end.
///
/// Its calls block: it is made for a command that has nothing else to do.
package final class RecordFileReader {
  /// The topic of the records.
  package private(set) var topic = ""
  /// The first line, which says when the file was written: no two files of a topic have the same.
  package private(set) var beginning: [UInt8] = []

  private let path: String
  private let descriptor: CInt
  private let lines: LineReader
  private var line = 0
  private var records: Int64 = 0
  private var isOver = false
  /// Where the next record of each partition must not lie before.
  private var next: [Int32: Int64] = [:]

  /// Opens the file, and reads its first line.
  package init(_ path: String) throws(RecordFileError) {
    self.path = path
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    lines = LineReader(descriptor, limit: RecordLine.limits.bytes, mayLackLastEnd: false)
    guard descriptor >= 0 else { throw RecordFileError(path, "\(SystemError.current)") }
    guard case .beginning(let format, let version, let topic)? = try readLine(), format == RecordLine.format else {
      throw fault("no file of records")
    }
    guard version == RecordLine.version else {
      throw fault("of version \(version), and this program knows \(RecordLine.version)")
    }
    guard !topic.isEmpty, topic.utf8.count <= 249 else { throw fault("does not name its topic") }
    self.topic = topic
  }

  deinit { close(descriptor) }

  /// The next records, at least one and at most `limit`; nil at the end of the file. Throws where it is not whole.
  package func next(upTo limit: Int) throws(RecordFileError) -> [ConsumedRecord]? {
    var some: [ConsumedRecord] = []
    while !isOver, some.count < limit {
      switch try readLine() {
      case nil: throw fault("the file ends before its end: it was cut off")
      case .beginning: throw fault("the file begins again")
      case .end(let count):
        guard count == records else { throw fault("\(records) records, of \(count) that were written") }
        isOver = true
        guard try takeLine() == nil else { throw fault("something stands behind the end") }
      case .record(let record):
        let (partition, offset) = (record.position.partition, record.position.offset)
        guard offset >= next[partition] ?? 0 else { throw fault("not behind the record before it in its partition") }
        next[partition] = offset + 1
        records += 1
        some.append(record)
      }
    }
    return some.isEmpty ? nil : some
  }

  private func fault(_ reason: String) -> RecordFileError { RecordFileError(path, line: line, reason) }

  private func readLine() throws(RecordFileError) -> RecordLine.Content? {
    guard let bytes = try takeLine() else { return nil }
    if line == 1 { beginning = bytes }
    do throws(JSONError) { return try RecordLine.read(bytes, of: topic) } catch {
      throw fault("not of the form of a record (\(error.code.rawValue))")
    }
  }

  /// The next line without its end; nil where there is none. A line that is not ended was cut off.
  private func takeLine() throws(RecordFileError) -> [UInt8]? {
    line += 1
    do throws(LineReader.Fault) {
      return try lines.next()
    } catch {
      switch error {
      case .tooLong: throw fault("too long")
      case .cutOff: throw fault("the file ends before its end: it was cut off")
      case .system(let error): throw RecordFileError(path, "\(error)")
      }
    }
  }
}
