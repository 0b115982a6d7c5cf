import AccountEvents
import EventLoop
import Glibc

/// Spools whose files turned out damaged. Each is set aside as it is, in a directory of its own beside the one that takes
/// its place: nothing in it is given up, and what is accepted meanwhile has somewhere to go.
enum DamagedSpool {
  private static let prefix = "damaged-"
  /// How the name of a directory ends as long as not all is in it.
  private static let unfinished = ".part"

  /// Sets aside the database in the spool at `path`, which nobody has open, and says where it is from then on. Whatever is
  /// killed and whenever, database and log end up together: `finish` does what is left.
  static func setAside(from path: String, at now: Timestamp) throws(SpoolError) -> String {
    let time = String(now.description.map { $0 == ":" ? "-" : $0 })
    let place = "\(path)/\(prefix)\(time)\(unfinished)"
    guard unsafe mkdir(place, 0o700) == 0 else { throw failure(place, path) }
    try SpoolDirectory.sync(path, path)
    // The database first: beside a database that is not its own, SQLite would throw the log away or take it for its own.
    try move("", from: path, to: place)
    return try finish(place, path)
  }

  /// Finishes what a run before this one began. Which log belongs to which database is said by a name: clocks go wrong.
  static func finish(in path: String, at now: Timestamp) throws(SpoolError) {
    let database = "\(path)/\(SpoolDirectory.database)"
    for place in try all(in: path) where isUnfinished(place) {
      if unsafe access("\(place)/\(SpoolDirectory.database)", F_OK) == 0 {
        _ = try finish(place, path)
      } else if unsafe rmdir(place) != 0 {
        throw failure(place, path)
      }
    }
    guard unsafe access(database, F_OK) != 0, try SpoolDirectory.size(of: database + "-wal", path) > 0 else { return }
    // Somebody took the database away, and left its log.
    _ = try setAside(from: path, at: now)
  }

  /// Moves the log to its database, and gives the directory its name.
  private static func finish(_ place: String, _ path: String) throws(SpoolError) -> String {
    let finished = String(place.dropLast(unfinished.count))
    try moveLog(from: path, to: place)
    guard unsafe rename(place, finished) == 0 else { throw failure(place, path) }
    try SpoolDirectory.sync(path, path)
    return finished
  }

  /// Where those are that were set aside and that nobody has taken away.
  static func all(in path: String) throws(SpoolError) -> [String] {
    try SpoolDirectory.names(in: path).filter { $0.hasPrefix(prefix) }.map { "\(path)/\($0)" }
  }

  /// Whether not all may be in the directory at `place` yet.
  static func isUnfinished(_ place: String) -> Bool { place.hasSuffix(unfinished) }

  private static func moveLog(from path: String, to place: String) throws(SpoolError) {
    try move("-wal", from: path, to: place)
    // The memory that is shared by those who have it open: nobody has.
    if unsafe unlink("\(path)/\(SpoolDirectory.database)-shm") != 0, errno != ENOENT { throw failure(path, path) }
  }

  private static func move(_ suffix: String, from path: String, to place: String) throws(SpoolError) {
    let name = SpoolDirectory.database + suffix
    if unsafe rename("\(path)/\(name)", "\(place)/\(name)") != 0, errno != ENOENT { throw failure(name, path) }
    for directory in [place, path] { try SpoolDirectory.sync(directory, path) }
  }

  private static func failure(_ name: String, _ path: String) -> SpoolError {
    let cause = SystemError.current
    return SpoolError([ENOSPC, EDQUOT].contains(cause.code) ? .full : .failed, path, "\(name): \(cause)")
  }
}
