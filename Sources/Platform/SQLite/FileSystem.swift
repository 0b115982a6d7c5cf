import CLinux
import CSQLite
import Glibc

/// SQLite's way to its files, on which a thread may do without what it would have to wait for: the loop's own, for one.
enum FileSystem {
  /// Tells SQLite of it, before the first file is opened. False where SQLite reads by other calls of the system than Debian's
  /// does.
  static let isInUse: Bool = {
    guard let system = unsafe sqlite3_vfs_find(nil), unsafe system.pointee.xGetSystemCall(system, "pread64") != nil
    else { return false }
    // Never freed: connections go by it for as long as the process lives.
    let own = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    unsafe own.initialize(to: system.pointee)
    unsafe own.pointee.zName = UnsafePointer(strdup("siwa"))
    // Between tries to get a lock. Where nothing is waited for, they come one after the other, and are over soon.
    unsafe own.pointee.xSleep = { _, microseconds in
      if !isWithoutWaiting { usleep(UInt32(clamping: microseconds)) }
      return microseconds
    }
    let read: @convention(c) (CInt, UnsafeMutableRawPointer?, Int, off_t) -> Int = { file, bytes, count, offset in
      unsafe isWithoutWaiting
        ? clinux_read_from_memory(file, bytes, count, offset) : pread(file, bytes, count, offset)
    }
    return unsafe sqlite3_vfs_register(own, 1) == SQLITE_OK
      && own.pointee.xSetSystemCall(own, "pread64", unsafeBitCast(read, to: sqlite3_syscall_ptr.self)) == SQLITE_OK
  }()

  /// Runs `body` on a thread that waits for nothing meanwhile: what the system does not have in its memory cannot be read,
  /// which is an error of SQLite's. Nil where that is not to be had; then nothing is run.
  static func withoutWaiting<Value>(_ body: () -> Value) -> Value? {
    guard isInUse else { return nil }
    // Any pointer that is not null says so.
    unsafe pthread_setspecific(mark, UnsafeRawPointer(bitPattern: 1))
    defer { pthread_setspecific(mark, nil) }
    return body()
  }

  private static var isWithoutWaiting: Bool { unsafe pthread_getspecific(mark) != nil }

  private static let mark: pthread_key_t = {
    var key = pthread_key_t()
    guard unsafe pthread_key_create(&key, nil) == 0 else { preconditionFailure("too many keys of threads") }
    return key
  }()
}
