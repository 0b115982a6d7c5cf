import EventLoop
import Glibc
import SQLite

/// Room on the disk that is kept for the day on which there is none.
///
/// Taking a record out makes room, but needs some first: in the database's log, and where the log is written into the
/// file. On a full disk the reserve is given up for that, and nothing new is taken in until it is there again, or as much
/// room in the file itself. So a spool that has filled its disk by itself can still be drained.
struct SpoolReserve: ~Copyable {
  /// What the log can hold, with all that one transaction adds to it, and as much again.
  static let size = 2 * Database.logSize

  private let descriptor: CInt
  private(set) var isThere = false

  /// Opens or makes the file at `path`, and takes the room if there is so much.
  init(_ path: String) throws(SystemError) {
    descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .current }
    take()
  }

  deinit { close(descriptor) }

  /// Takes the room again, if there is so much.
  mutating func take() { isThere = isThere || posix_fallocate(descriptor, 0, off_t(Self.size)) == 0 }

  /// Gives the room back to the disk.
  mutating func giveUp() { isThere = ftruncate(descriptor, 0) != 0 && isThere }
}
