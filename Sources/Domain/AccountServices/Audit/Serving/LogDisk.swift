package import EventLoop
package import TransparencyLog

/// The directory of a log, read on a thread of its own: whoever waits for the disk is not the event loop.
package struct LogDisk: LogSource {
  private let directory: LogDirectory
  private let thread: BlockingThread

  /// The log in the directory at `path`.
  package init(_ path: String, thread: BlockingThread) { (directory, self.thread) = (LogDirectory(path), thread) }

  /// The bytes of a resource; nil where it is not there.
  package func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]? {
    let directory = directory
    return try await thread.run { Result { () throws(LogError) in try directory.contents(of: path, limit: limit) } }
      .get()
  }
}
