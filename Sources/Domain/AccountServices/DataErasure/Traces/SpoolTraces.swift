import AccountEvents
import EventLoop
import Glibc
import SQLite

/// Searches the spool of an ingress for a person: the records that wait, and the bytes of every file in its directory.
package enum SpoolTraces {
  /// What is read of a file at once.
  private static let chunk = 1 << 20

  /// Searches the spool in `directory`, whether a process has it at the moment or not. It blocks while it reads.
  package static func search(_ directory: String, for marks: PersonMarks) throws(SpoolError) -> PersonTrace {
    let place = "spool \(directory)"
    guard unsafe access(directory, F_OK) == 0 || errno != ENOENT else {
      return PersonTrace(place, "no spool on this machine", .nothing)
    }
    let damaged = try DamagedSpool.all(in: directory)
    for folder in damaged.sorted() {
      if try !files(in: folder, with: marks).isEmpty {
        return PersonTrace(place, "bytes in \(folder)", .staying("until somebody removes that directory"))
      }
    }
    let waiting = try records(in: directory, of: marks)
    if waiting.named > 0 {
      return PersonTrace(
        place, "\(waiting.named) records that wait for Kafka", .staying("until the ingress has published them"))
    }
    if waiting.unreadable > 0 {
      return PersonTrace(
        place, "\(waiting.unreadable) records that nobody can read", .unknown("see 'siwa spool list'"))
    }
    let files = try files(in: directory, with: marks)
    if files.isEmpty { return .nothing(place) }
    return PersonTrace(
      place, "bytes of records that are gone, in \(files.joined(separator: ", "))", .passing(until: nil))
  }

  /// How many records wait that name the person, and how many nobody can read.
  private static func records(
    in directory: String, of marks: PersonMarks
  ) throws(SpoolError) -> (named: Int, unreadable: Int) {
    let database: Database
    do throws(SpoolError) { database = try SpoolSchema.look(into: directory) } catch {
      if error.code == .missing { return (0, 0) }
      throw error
    }
    var (named, unreadable) = (0, 0)
    try SpoolError.translating(directory) { () throws(SQLiteError) in
      try database.prepare("SELECT sequence, since, topic, key, headers, value FROM held").forEach {
        row throws(SQLiteError) in
        do throws(SQLiteError) {
          if marks.areIn(try SpooledRecord(reading: row).record) { named += 1 }
        } catch {
          guard error.code == .unexpectedValue else { throw error }
          unreadable += 1
        }
      }
    }
    return (named, unreadable)
  }

  /// The files in a directory that hold the person's `sub`, by their names.
  private static func files(in directory: String, with marks: PersonMarks) throws(SpoolError) -> [String] {
    var found: [String] = []
    for name in try SpoolDirectory.names(in: directory) {
      let path = "\(directory)/\(name)"
      do throws(SystemError) { if try isNamed(inFile: path, marks) { found.append(name) } } catch {
        // One that went meanwhile holds nothing.
        if error.code != ENOENT { throw SpoolError(.failed, directory, "\(name): \(error)") }
      }
    }
    return found.sorted()
  }

  private static func isNamed(inFile path: String, _ marks: PersonMarks) throws(SystemError) -> Bool {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
    guard descriptor >= 0 else { throw .current }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .current }
    guard status.st_mode & S_IFMT == S_IFREG else { return false }
    var rest: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: chunk)
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      guard count >= 0 else { throw .current }
      if count == 0 { return false }
      rest.append(contentsOf: buffer.prefix(count))
      if marks.areIn(rest) { return true }
      rest.removeFirst(max(0, rest.count - marks.overlap))
    }
  }
}
