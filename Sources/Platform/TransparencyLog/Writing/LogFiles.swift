import CLinux
import Glibc

/// The files of a log as its only writer has them: the directory is locked for as long as the value lives.
///
/// All names are looked up in the directory that is locked, whatever becomes of its path.
struct LogFiles: ~Copyable {
  /// The directory, to read from by its path.
  let directory: LogDirectory
  /// The directory itself, under flock(2). No program that is started keeps it (O_CLOEXEC), so it is free as soon as the
  /// process ends. It stays open so that no step behind a renaming opens anything.
  private let folder: CInt

  /// Takes the directory. Throws `.absent` where there is none, and `.locked` where another process has it.
  ///
  /// - Parameter making: Whether a directory that is missing is made.
  init(locking path: String, making: Bool = false) throws(LogError) {
    directory = LogDirectory(path)
    if making {
      if unsafe mkdir(path, 0o755) == 0 {
        try Self.sync(directory: "\(path)/..")
      } else if errno != EEXIST {
        throw errno == ENOENT ? LogError(.failed, path, "the directory that it is to lie in is missing") : .system(path)
      }
    }
    let folder = unsafe open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard folder >= 0 else {
      throw errno == ENOENT ? LogError(.absent, path, "there is no such directory") : .system(path)
    }
    do throws(LogError) {
      try Self.lock(folder, path)
    } catch {
      close(folder)
      throw error
    }
    self.folder = folder
  }

  deinit {
    // Before it is closed: a program that is being started at this moment has the descriptor, too.
    flock(folder, LOCK_UN)
    close(folder)
  }

  private static func lock(_ folder: CInt, _ path: String) throws(LogError) {
    var (status, kind) = (stat(), UInt32(0))
    guard unsafe fstat(folder, &status) == 0, unsafe clinux_file_system_kind(folder, &kind) == 0 else {
      throw .system(path)
    }
    guard status.st_mode & 0o022 == 0, [0, geteuid()].contains(status.st_uid) else {
      throw LogError(.failed, path, "a directory of another user, or that another user can write to")
    }
    guard !isRemote(kind) else {
      throw LogError(.failed, path, "a network or FUSE file system, whose locks do not keep other machines away")
    }
    guard flock(folder, LOCK_EX | LOCK_NB) == 0 else {
      throw errno == EWOULDBLOCK ? LogError(.locked, path, "another process writes this log") : .system(path)
    }
  }

  /// Whether a kind of file system (statfs(2)) is one of NFS, SMB, CIFS, SMB2 and FUSE.
  static func isRemote(_ type: UInt32) -> Bool {
    [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546].contains(type)
  }

  /// The bytes of one of the writer's own files or of the log's; nil where it is not there.
  func contents(of path: String, limit: Int) throws(LogError) -> [UInt8]? {
    try locked.contents(of: path, limit: limit)
  }

  /// The directory that is locked, to read from while the value lives.
  var locked: LogDirectory { LogDirectory(directory.path, open: folder) }

  /// Whether there are tiles or entries of a log.
  func hasTiles() throws(LogError) -> Bool {
    var status = stat()
    if unsafe fstatat(folder, "tile", &status, 0) == 0 { return true }
    guard errno == ENOENT else { throw .system("tile") }
    return false
  }

  /// Writes a file that no checkpoint needs yet, under its name as a whole or not at all. It is durable after the next
  /// `sync`.
  func write(_ bytes: [UInt8], to path: String) throws(LogError) {
    let draft = ".tile\(Self.draftSuffix)"
    try withDraft(draft) { descriptor throws(LogError) in
      try Self.write(bytes, to: descriptor, path)
      if unsafe renameat(folder, draft, folder, path) == 0 { return }
      guard errno == ENOENT else { throw .system(path) }
      let parts = path.split(separator: "/")
      for count in 1..<max(parts.count, 1) {
        guard unsafe mkdirat(folder, parts.prefix(count).joined(separator: "/"), 0o755) == 0 || errno == EEXIST else {
          throw .system(path)
        }
      }
      guard unsafe renameat(folder, draft, folder, path) == 0 else { throw .system(path) }
    }
  }

  /// Makes all that was written durable, and the directories that it lies in: one call for any number of files.
  func sync() throws(LogError) {
    guard Self.uninterrupted({ clinux_sync_file_system(folder) }) == 0 else { throw .system("") }
  }

  /// Makes durable what a writer before has left: all files, and the names in the directory.
  func syncAll() throws(LogError) {
    try sync()
    try Self.sync(folder, "")
  }

  /// Replaces a file, and returns once the new bytes are durable: whatever fails and whenever, the old bytes are there or
  /// the new ones.
  func replace(_ path: String, with bytes: [UInt8]) throws(LogError) {
    let draft = (path.hasPrefix(".") ? path : ".\(path)") + Self.draftSuffix
    try withDraft(draft) { descriptor throws(LogError) in
      try Self.write(bytes, to: descriptor, path)
      try Self.sync(descriptor, path)
      guard unsafe renameat(folder, draft, folder, path) == 0 else { throw .system(path) }
      try Self.sync(folder, path)
    }
  }

  /// Removes the partial files that stood in for a file, where there are any. They harm nobody, so one that cannot be
  /// removed stays: what has been published has been published.
  func removePartials(of path: TilePath) {
    removeFiles(in: path.partials) { $0 != "." && $0 != ".." }
    unsafe unlinkat(folder, path.partials, AT_REMOVEDIR)
  }

  /// Removes what a writer that was killed had not brought under its name.
  func removeDrafts() { removeFiles(in: ".") { $0.hasPrefix(".") && $0.hasSuffix(Self.draftSuffix) } }

  private func removeFiles(in path: String, where isSuperfluous: (String) -> Bool) {
    // What cannot be read stays, and harms nobody.
    try? forEachName(in: path) { folder, name in
      if isSuperfluous(name) { unsafe unlinkat(folder, name, 0) }
    }
  }

  /// Something that lies in the directory and is neither the file system's own nor the draft of that file: nil where a log
  /// may begin there.
  func foreignName(beside path: String) throws(LogError) -> String? {
    var found: String?
    try forEachName(in: ".") { _, name in
      if ![".", "..", "lost+found", path + Self.draftSuffix].contains(name) { found = name }
    }
    return found
  }

  private func forEachName(in path: String, _ body: (CInt, String) -> Void) throws(LogError) {
    let descriptor = unsafe openat(folder, path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard descriptor >= 0 else { throw .system(path) }
    guard let listing = unsafe fdopendir(descriptor) else {
      close(descriptor)
      throw .system(path)
    }
    defer { unsafe closedir(listing) }
    while let entry = unsafe readdir(listing) {
      let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) {
        unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      body(descriptor, name)
    }
  }

  /// What the name of a file ends in that is not whole yet; it begins with a dot.
  private static let draftSuffix = ".new"

  /// Opens a draft for writing, and removes it where `body` throws: on a full disk it would keep room from others.
  private func withDraft(_ draft: String, _ body: (CInt) throws(LogError) -> Void) throws(LogError) {
    let descriptor = unsafe openat(folder, draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o644)
    guard descriptor >= 0 else { throw .system(draft) }
    defer { close(descriptor) }
    do throws(LogError) {
      try body(descriptor)
    } catch {
      unsafe unlinkat(folder, draft, 0)
      throw error
    }
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
