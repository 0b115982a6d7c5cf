package import Cryptography
import EventLoop
import Glibc

/// A file that is written piece by piece under a temporary name, and stands under its own once it is whole and would survive a
/// power failure. Only this user may read it; where it is encrypted, nothing of it was ever on the disk in the clear.
///
/// Its calls block. One that is never published is gone; what a kill leaves behind the next one removes, and says so. While it
/// is written it is under flock(2), so that no other process takes it for such a leftover.
package final class TransferDraft {
  /// How much is gathered before it is written.
  private static let chunk = 1 << 16

  /// Where it is going to be.
  package let path: String
  /// What a run that was broken off had left under the temporary name, and is gone now; nil where there was nothing.
  package let leftover: String?
  private let draft: String
  private let descriptor: CInt
  private var encryption: Age.Conversation?
  private var gathered: [UInt8] = []
  private var isPublished = false

  /// A new draft, encrypted by age to `recipient` where there is one.
  package init(_ path: String, encryptedTo recipient: String? = nil, by age: Age) throws(TransferFileFault) {
    let leftover = try TransferDraft.removeLeftover(of: path)
    let draft = TransferDraft.draft(of: path)
    let descriptor = unsafe open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw TransferFileFault(draft, .current) }
    // Between the two calls another process may have removed it.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, TransferDraft.isName(draft, of: descriptor) else {
      close(descriptor)
      throw TransferDraft.isBeingWritten(draft)
    }
    (self.path, self.leftover, self.draft, self.descriptor) = (path, leftover, draft, descriptor)
    guard let recipient else { return }
    do throws(SystemError) {
      encryption = try age.encrypt(to: recipient, into: descriptor)
    } catch {
      throw TransferFileFault("age", "it cannot be started: \(error) (Debian's package is age)")
    }
  }

  private static func draft(of path: String) -> String { "\(path).new" }

  /// Removes what a run that was broken off has left of this file. Returns its path; nil where there was nothing.
  static func removeLeftover(of path: String) throws(TransferFileFault) -> String? {
    let draft = Self.draft(of: path)
    let descriptor = unsafe open(draft, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    if descriptor < 0, errno == ENOENT { return nil }
    guard descriptor >= 0 else { throw TransferFileFault(draft, .current) }
    defer { close(descriptor) }
    // Between the two calls another process may have removed it, and begun its own.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, isName(draft, of: descriptor) else { throw isBeingWritten(draft) }
    guard unsafe unlink(draft) == 0 else { throw TransferFileFault(draft, .current) }
    return draft
  }

  private static func isName(_ draft: String, of descriptor: CInt) -> Bool {
    var (named, opened) = (stat(), stat())
    return unsafe lstat(draft, &named) == 0 && fstat(descriptor, &opened) == 0
      && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev
  }

  private static func isBeingWritten(_ draft: String) -> TransferFileFault {
    TransferFileFault(draft, "another process is writing it")
  }

  deinit {
    encryption = nil
    // Under the lock, which ends with the descriptor: behind it the name may be another process's.
    if !isPublished { unsafe unlink(draft) }
    close(descriptor)
  }

  /// Writes a piece, now or with those behind it.
  package func write(_ bytes: [UInt8]) throws(TransferFileFault) {
    gathered += bytes
    if gathered.count >= Self.chunk { try pour() }
  }

  /// Nothing more is written: returns how large it is, and its digest, once it is durable.
  package func finish() throws(TransferFileFault) -> (size: Int64, digest: SHA256Digest) {
    try pour()
    if let encryption {
      guard encryption.finish() else { throw TransferFileFault("age", "it did not encrypt: its own words are above") }
    }
    encryption = nil
    guard fsync(descriptor) == 0 else { throw TransferFileFault(draft, .current) }
    return try RegularFile.digest(of: descriptor, draft, upTo: .max)
  }

  /// Gives it its name, durably.
  package func publish() throws(TransferFileFault) {
    guard unsafe rename(draft, path) == 0 else { throw TransferFileFault(path, .current) }
    isPublished = true
    try Directory.sync(Directory.parent(of: path))
  }

  private func pour() throws(TransferFileFault) {
    let target = encryption?.descriptor ?? descriptor
    var rest = gathered[...]
    gathered = []
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(target, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw TransferFileFault(encryption == nil ? draft : "age", .current) }
      rest = rest.dropFirst(count)
    }
  }
}

/// Folders of files that have to be there after a power failure.
package enum Directory {
  /// Makes one that only this user can use, durably, unless it is there.
  package static func make(_ path: String) throws(TransferFileFault) {
    if unsafe mkdir(path, 0o700) == 0 { return try sync(parent(of: path)) }
    if errno != EEXIST { throw TransferFileFault(path, .current) }
  }

  /// Takes it for this process alone, until `unlock` is told. Throws where another process has it.
  static func lock(_ path: String) throws(TransferFileFault) -> CInt {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard descriptor >= 0 else { throw TransferFileFault(path, .current) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let cause = SystemError.current
      close(descriptor)
      throw cause.code == EWOULDBLOCK
        ? TransferFileFault(path, "another process exports to it") : TransferFileFault(path, cause)
    }
    return descriptor
  }

  /// Lets it go. A child that is being started has the descriptor for a moment, too: closing it is not enough.
  static func unlock(_ descriptor: CInt) {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Removes a file, if it is there, durably. Returns whether it was.
  @discardableResult
  static func remove(_ name: String, from path: String) throws(TransferFileFault) -> Bool {
    let isThere = unsafe unlink("\(path)/\(name)") == 0
    guard isThere || errno == ENOENT else { throw TransferFileFault("\(path)/\(name)", .current) }
    try sync(path)
    return isThere
  }

  /// Returns once the names in it would survive a power failure.
  static func sync(_ path: String) throws(TransferFileFault) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    guard descriptor >= 0 else { throw TransferFileFault(path, .current) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw TransferFileFault(path, .current) }
  }

  /// The folder that a file lies in.
  static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
