import EventLoop
import Glibc

/// The directory of a spool, which one process at a time may have: gone with the value, and with the process.
struct SpoolDirectory: ~Copyable {
  /// The name of the database in it.
  static let database = "spool.sqlite"

  /// Held under flock(2). No program that is started keeps it (O_CLOEXEC), so nobody else has it locked.
  private let lock: CInt

  /// Makes the directory where it is missing, for this user alone, and takes it.
  init(taking path: String) throws(SpoolError) {
    if unsafe mkdir(path, 0o700) == 0 {
      try Self.sync(path + "/..", path)
    } else if errno != EEXIST {
      throw SpoolError(.unusableDirectory, path, "the directory cannot be made: \(SystemError.current)")
    }
    var status = stat()
    guard unsafe stat(path, &status) == 0 else {
      throw SpoolError(.unusableDirectory, path, "\(SystemError.current)")
    }
    guard status.st_mode & S_IFMT == S_IFDIR, status.st_mode & 0o022 == 0, [0, geteuid()].contains(status.st_uid)
    else { throw SpoolError(.unusableDirectory, path, "no directory, or one that another user can write to") }
    let lock = unsafe open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard lock >= 0 else { throw SpoolError(.unusableDirectory, path, "lock: \(SystemError.current)") }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      let cause = SystemError.current
      close(lock)
      throw cause.code == EWOULDBLOCK
        ? SpoolError(.inUse, path, "another process has it; each process needs a directory of its own")
        : SpoolError(.unusableDirectory, path, "lock: \(cause)")
    }
    self.lock = lock
  }

  deinit {
    // Before it is closed: a program that is being started at this moment has the descriptor, too.
    flock(lock, LOCK_UN)
    close(lock)
  }

  /// The size of a file in the spool at `path`; 0 where there is none.
  static func size(of file: String, _ path: String) throws(SpoolError) -> Int {
    var status = stat()
    if unsafe stat(file, &status) == 0 { return Int(status.st_size) }
    guard errno == ENOENT else { throw SpoolError(.unusableDirectory, path, "\(file): \(SystemError.current)") }
    return 0
  }

  /// The names of what is in a directory of a spool.
  static func names(in path: String) throws(SpoolError) -> [String] {
    do throws(SystemError) { return try DirectoryNames.read(path) } catch {
      throw SpoolError(.failed, path, "\(path): \(error)")
    }
  }

  /// Whether the disk takes not even the name of another file.
  static func takesNoFile(_ path: String) -> Bool {
    let name = "\(path)/room"
    let file = unsafe open(name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { return [ENOSPC, EDQUOT].contains(errno) }
    close(file)
    unsafe unlink(name)
    return false
  }

  /// Makes the names in a directory survive a power failure.
  static func sync(_ parent: String, _ path: String) throws(SpoolError) {
    let directory = unsafe open(parent, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard directory >= 0 else { throw SpoolError(.unusableDirectory, path, "\(SystemError.current)") }
    defer { close(directory) }
    guard fsync(directory) == 0 else { throw SpoolError(.failed, path, "\(SystemError.current)") }
  }
}
