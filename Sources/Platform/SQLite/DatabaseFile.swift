import EventLoop
import Glibc

/// The file of a database, before SQLite opens it.
struct DatabaseFile {
  /// The path, in a form that SQLite takes for nothing else: neither an address nor memory.
  let path: String

  init(_ path: String) { self.path = path.hasPrefix("/") ? path : "./\(path)" }

  /// The path as an address by which SQLite takes the file for one that nobody changes.
  var unchangingAddress: String {
    let escapes: [Character: String] = ["%": "%25", "?": "%3f", "#": "%23"]
    return "file:" + path.map { escapes[$0] ?? String($0) }.joined() + "?immutable=1"
  }

  /// Makes an empty file that only this user can read; one that is there must be ours. SQLite gives its log and its
  /// shared memory the same mode.
  func makeWhereMissing() throws(SQLiteError) {
    // Only ever opened as a new file: closing a descriptor of one that SQLite has open takes SQLite's locks away.
    let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    if descriptor >= 0 {
      close(descriptor)
      return try syncDirectory()
    }
    let cause = SystemError.current
    guard cause.code == EEXIST else {
      throw SQLiteError([ENOSPC, EDQUOT].contains(cause.code) ? .full : .cantOpen, detail: "\(path): \(cause)")
    }
    var status = stat()
    guard unsafe stat(path, &status) == 0 else {
      throw SQLiteError(.cantOpen, detail: "\(path): \(SystemError.current)")
    }
    guard status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o022 == 0, [0, geteuid()].contains(status.st_uid)
    else {
      throw SQLiteError(.cantOpen, detail: "\(path): no regular file, or one that another user can write")
    }
  }

  /// Makes an empty file that only this user can read, where there is none.
  func makeNew() throws(SQLiteError) {
    let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SQLiteError(.cantOpen, detail: "\(path): \(SystemError.current)") }
    close(descriptor)
  }

  /// Makes the names in the file's directory survive a power failure.
  func syncDirectory() throws(SQLiteError) {
    let slash = path.lastIndex(of: "/")
    let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let directory = unsafe open(parent, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard directory >= 0 else { throw SQLiteError(.cantOpen, detail: "\(parent): \(SystemError.current)") }
    defer { close(directory) }
    guard fsync(directory) == 0 else { throw SQLiteError(.ioError, detail: "\(parent): \(SystemError.current)") }
  }
}
