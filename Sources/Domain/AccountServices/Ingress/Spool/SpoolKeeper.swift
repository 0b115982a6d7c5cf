import AccountEvents
import EventLoop
import SQLite
import Synchronization

/// The spool's thread, and the file that is used on it alone.
final class SpoolKeeper: Sendable {
  private let directory: String
  private let thread = BlockingThread(named: "spool")
  /// The lock is never waited for: one thread takes it.
  private let file = Mutex<SpoolFile?>(nil)
  private let lock = Mutex<SpoolDirectory?>(nil)

  /// A keeper of the spool in `directory`.
  init(_ directory: String) { self.directory = directory }

  /// What opening came to.
  struct Opening: Sendable {
    /// What the file holds.
    var content: SpoolFile.Content
    /// Why it is not open. Nil where it is.
    var refusal: SpoolError?
    /// What it holds, where it is not open.
    var held: [HeldRecord] = []
    /// Where a damaged file was set aside, and what was wrong with it.
    var setAside: (place: String, cause: SpoolError)?
  }

  /// Takes the directory, and opens the file. A damaged one is set aside, and another one takes its place; where the disk is
  /// full, the file is only read, and `reopen` may open it later.
  func open(at now: Timestamp) async throws(SpoolError) -> Opening {
    try await run { [self] () throws(SpoolError) in
      try lock.withLock { lock throws(SpoolError) in lock = try SpoolDirectory(taking: directory) }
      do throws(SpoolError) {
        return try openFile(at: now)
      } catch {
        lock.withLock { $0 = nil }
        throw error
      }
    }
  }

  /// Takes the directory, and opens the file that is there as it is.
  func openAsItIs() async throws(SpoolError) {
    try await run { [self] () throws(SpoolError) in
      _ = try SpoolSchema.look(into: directory)  // there is one, and of a version that is known
      try lock.withLock { lock throws(SpoolError) in lock = try SpoolDirectory(taking: directory) }
      _ = try openDatabase()
    }
  }

  /// Tries once more to open the file. One that turns out damaged is set aside as at the start.
  func reopen(at now: Timestamp) async -> Opening {
    await thread.run { [self] in
      guard lock.withLock({ $0 != nil }) else {
        return Opening(content: SpoolFile.Content(), refusal: SpoolError(.closed, directory, "it was closed"))
      }
      return tryToOpen(at: now)
    }
  }

  /// How many damaged files were set aside and are still there.
  func countSetAside() async throws(SpoolError) -> Int {
    try await run { [directory] () throws(SpoolError) in try DamagedSpool.all(in: directory).count }
  }

  /// Opens the file. Where the disk is full, says what it holds instead.
  private func openFile(at now: Timestamp) throws(SpoolError) -> Opening {
    var opening = tryToOpen(at: now)
    guard let refusal = opening.refusal else { return opening }
    guard refusal.code == .full else { throw refusal }
    do throws(SpoolError) {
      guard let database = try SpoolSchema.lookWithoutRoom(into: directory) else { return opening }
      (opening.content, opening.held) = try SpoolError.translating(directory) { () throws(SQLiteError) in
        (try SpoolSchema.content(of: database), try SpoolSchema.heldRecords(of: database))
      }
    } catch {
      // Full and damaged: to set it aside needs a name and no more.
      guard error.code == .damaged else { throw error }
      do throws(SpoolError) {
        opening.setAside = (try DamagedSpool.setAside(from: directory, at: now), error)
      } catch {
        // Not even that: once there is room, opening it finds the damage again.
        guard error.code == .full else { throw error }
      }
    }
    return opening
  }

  /// Opens the file, or another one in the place of a damaged one. What it came to before it failed is said too.
  private func tryToOpen(at now: Timestamp) -> Opening {
    var opening = Opening(content: SpoolFile.Content())
    do throws(SpoolError) {
      try DamagedSpool.finish(in: directory, at: now)
      do throws(SpoolError) {
        opening.content = try openDatabase()
      } catch {
        guard error.code == .damaged else { throw error }
        opening.setAside = (try DamagedSpool.setAside(from: directory, at: now), error)
        opening.content = try openDatabase()
      }
    } catch {
      opening.refusal = error
    }
    return opening
  }

  private func openDatabase() throws(SpoolError) -> SpoolFile.Content {
    try file.withLock { file throws(SpoolError) in
      let opened = try SpoolFile(in: directory)
      file = opened
      return opened.content
    }
  }

  private func run<Value: Sendable>(
    _ work: @escaping @Sendable () throws(SpoolError) -> Value
  ) async throws(SpoolError) -> Value {
    try await thread.run { Result { () throws(SpoolError) in try work() } }.get()
  }

  /// Runs `work` with the file, unless it was closed.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable (SpoolFile) throws(SpoolError) -> Value
  ) async -> Result<Value, SpoolError> {
    await thread.run { [self] in
      file.withLock { file in
        Result { () throws(SpoolError) in
          guard let file else { throw SpoolError(.closed, directory, "it was closed") }
          return try work(file)
        }
      }
    }
  }

  /// Closes the file, and lets go of the directory. The thread ends with the keeper.
  func close() async {
    await thread.run { [self] in
      file.withLock { $0 = nil }
      lock.withLock { $0 = nil }
    }
  }
}
