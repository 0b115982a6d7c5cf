import CSQLite

extension Database {
  /// Writes a copy, as of one moment, into a new file at `path` that only this user can read. Others may write to this
  /// database meanwhile. `progress` is told how many pages of how many are done.
  ///
  /// When it returns, the copy is on the disk. Where it throws, part of a copy may be there.
  public func copy(to path: String, progress: (_ done: Int, _ total: Int) -> Void) throws(SQLiteError) {
    let file = DatabaseFile(path)
    try file.makeNew()
    var handle: OpaquePointer?
    let result = unsafe sqlite3_open_v2(
      file.path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
    defer { unsafe sqlite3_close_v2(handle) }
    guard let target = unsafe handle, result == SQLITE_OK else { throw unsafe SQLiteError(result, of: handle) }
    // Of the snapshot there are pages to copy for as long as it lasts: a writer does not make the copy begin anew.
    try snapshot { () throws(SQLiteError) in
      try prepare("SELECT count(*) FROM sqlite_schema").run()
      guard let copying = unsafe sqlite3_backup_init(target, "main", self.handle, "main") else {
        throw unsafe SQLiteError(sqlite3_errcode(target), of: target)
      }
      var step: Int32
      repeat {
        step = unsafe sqlite3_backup_step(copying, 1024)
        let total = Int(unsafe sqlite3_backup_pagecount(copying))
        progress(total - Int(unsafe sqlite3_backup_remaining(copying)), total)
      } while step == SQLITE_OK
      let end = unsafe sqlite3_backup_finish(copying)
      guard step == SQLITE_DONE, end == SQLITE_OK else {
        throw unsafe SQLiteError(step == SQLITE_DONE ? end : step, of: target)
      }
    }
    try file.syncDirectory()
  }

  /// Makes the names in the directory of `path` survive a power failure.
  public static func syncDirectory(of path: String) throws(SQLiteError) { try DatabaseFile(path).syncDirectory() }
}
