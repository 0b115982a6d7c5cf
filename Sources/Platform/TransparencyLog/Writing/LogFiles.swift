import CLinux
import Glibc

/// The files of a log as its only writer has them: the directory is locked for as long as the value lives.
struct LogFiles: ~Copyable {
  /// The directory, to read from.
  let directory: LogDirectory
  /// Held under flock(2). No program that is started inherits it (O_CLOEXEC), so it is free as soon as the process ends.
  private let lock: CInt
  /// The directory itself, open for as long as its names have to be made durable: no step behind a renaming opens anything.
  private let folder: CInt

  /// Makes the directory where it is missing, and takes it. Throws `.locked` where another process has it.
  init(locking path: String) throws(LogError) {
    directory = LogDirectory(path)
    if unsafe mkdir(path, 0o755) == 0 {
      try Self.sync(directory: "\(path)/..")
    } else if errno != EEXIST {
      throw .system(path)
    }
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { throw .system(path) }
    guard status.st_mode & S_IFMT == S_IFDIR, status.st_mode & 0o022 == 0, [0, geteuid()].contains(status.st_uid)
    else { throw LogError(.failed, path, "no directory, or one that another user can write to") }
    let lock = unsafe open("\(path)/.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard lock >= 0 else { throw .system("\(path)/.lock") }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      let error = errno == EWOULDBLOCK ? LogError(.locked, path, "another process writes this log") : .system(path)
      close(lock)
      throw error
    }
    let folder = unsafe open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard folder >= 0 else {
      let error = LogError.system(path)
      close(lock)
      throw error
    }
    (self.lock, self.folder) = (lock, folder)
  }

  deinit {
    close(folder)
    close(lock)
  }

  /// Whether there are tiles or entries of a log.
  func hasTiles() throws(LogError) -> Bool {
    var status = stat()
    if unsafe stat("\(directory.path)/tile", &status) == 0 { return true }
    guard errno == ENOENT else { throw .system("tile") }
    return false
  }

  /// Writes a file that no checkpoint needs yet. It is durable after the next `sync`.
  func write(_ bytes: [UInt8], to path: String) throws(LogError) {
    let descriptor = try create(path)
    defer { close(descriptor) }
    try Self.write(bytes, to: descriptor, path)
  }

  /// Makes all that was written durable, and the directories that it lies in: one call for any number of files.
  func sync() throws(LogError) {
    guard Self.uninterrupted({ clinux_sync_file_system(lock) }) == 0 else { throw .system("") }
  }

  /// Makes durable what a writer before has left: all files, and the names in the directory.
  func syncAll() throws(LogError) {
    try sync()
    try Self.sync(folder, "")
  }

  /// Replaces a file, and returns once the new bytes are durable: whatever fails and whenever, the old bytes are there or
  /// the new ones.
  func replace(_ path: String, with bytes: [UInt8]) throws(LogError) {
    let draft = path.hasPrefix(".") ? "\(path).new" : ".\(path).new"
    let descriptor = try create(draft)
    defer { close(descriptor) }
    try Self.write(bytes, to: descriptor, path)
    try Self.sync(descriptor, path)
    guard unsafe rename("\(directory.path)/\(draft)", "\(directory.path)/\(path)") == 0 else { throw .system(path) }
    try Self.sync(folder, path)
  }

  /// Removes the partial files that stood in for a file, where there are any.
  func removePartials(of path: TilePath) throws(LogError) {
    let folder = "\(directory.path)/\(path.partials)"
    guard let listing = unsafe opendir(folder) else {
      if errno == ENOENT { return }
      throw .system(path.partials)
    }
    var names: [String] = []
    while let entry = unsafe readdir(listing) {
      names.append(
        unsafe withUnsafeBytes(of: entry.pointee.d_name) {
          unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        })
    }
    unsafe closedir(listing)
    for name in names where name != "." && name != ".." {
      guard unsafe unlink("\(folder)/\(name)") == 0 else { throw .system(path.partials) }
    }
    guard unsafe rmdir(folder) == 0 else { throw .system(path.partials) }
  }

  /// Opens a file for writing, with the directories on the way to it.
  private func create(_ path: String) throws(LogError) -> CInt {
    let file = "\(directory.path)/\(path)"
    let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW
    var descriptor = unsafe open(file, flags, 0o644)
    if descriptor < 0, errno == ENOENT {
      var folder = directory.path
      for part in path.split(separator: "/").dropLast() {
        folder += "/\(part)"
        guard unsafe mkdir(folder, 0o755) == 0 || errno == EEXIST else { throw .system(path) }
      }
      descriptor = unsafe open(file, flags, 0o644)
    }
    guard descriptor >= 0 else { throw .system(path) }
    return descriptor
  }

  private static func write(_ bytes: [UInt8], to descriptor: CInt, _ path: String) throws(LogError) {
    var count = 0
    while count < bytes.count {
      let written = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.write(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
      }
      if written >= 0 { count += written } else if errno != EINTR { throw .system(path) }
    }
  }

  /// Makes the names in a directory durable.
  private static func sync(directory path: String) throws(LogError) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard descriptor >= 0 else { throw .system(path) }
    defer { close(descriptor) }
    try sync(descriptor, path)
  }

  private static func sync(_ descriptor: CInt, _ path: String) throws(LogError) {
    guard uninterrupted({ fsync(descriptor) }) == 0 else { throw .system(path) }
  }

  /// The result of a call that is made again where a signal interrupts it.
  private static func uninterrupted(_ call: () -> CInt) -> CInt {
    while true {
      let result = call()
      if result >= 0 || errno != EINTR { return result }
    }
  }
}
