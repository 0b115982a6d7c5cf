import AccountEvents
import EventLoop
import Glibc
import SQLite

/// Searches the spool of an ingress for a person: the records that wait, and the bytes of every file in its directory.
package enum SpoolTraces {
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
    guard try Set(DamagedSpool.all(in: directory)) == Set(damaged), !damaged.contains(where: DamagedSpool.isUnfinished)
    else {
      return PersonTrace(place, "files that are being set aside", .unknown("look again once the ingress has done so"))
    }
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
      do throws(SystemError) { if try marks.areIn(file: path) { found.append(name) } } catch {
        // One that went meanwhile holds nothing.
        if error.code != ENOENT { throw SpoolError(.failed, directory, "\(name): \(error)") }
      }
    }
    return found.sorted()
  }
}
