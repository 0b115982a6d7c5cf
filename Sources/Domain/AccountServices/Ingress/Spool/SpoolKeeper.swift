import EventLoop
import Synchronization

/// The spool's thread, and the file that is used on it alone.
final class SpoolKeeper: Sendable {
  private let directory: String
  private let thread = BlockingThread(named: "spool")
  /// The lock is never waited for: one thread takes it.
  private let file = Mutex<SpoolFile?>(nil)

  /// A keeper of the spool in `directory`.
  init(_ directory: String) { self.directory = directory }

  /// Opens the file.
  func open() async throws(SpoolError) -> SpoolFile.Content {
    let result = await thread.run { [self] in
      Result { () throws(SpoolError) in
        try file.withLock { file throws(SpoolError) in
          let opened = try SpoolFile(in: directory)
          file = opened
          return opened.content
        }
      }
    }
    return try result.get()
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
  func close() async { await thread.run { [self] in file.withLock { $0 = nil } } }
}
