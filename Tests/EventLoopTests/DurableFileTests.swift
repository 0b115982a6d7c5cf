import EventLoop
import Glibc
import TestSupport
import Testing

/// A file that is replaced as a whole.
@Suite(.timeLimit(.minutes(30))) struct DurableFileTests {
  private let files = TemporaryDirectory()

  /// As two containers that share a folder: their processes have the same number.
  @Test func whoReplacesItAtOnceIsInNobodysWay() async throws {
    let file = DurableFile(path: files.path + "/keys.json")
    let contents = (UInt8(0)..<4).map { [UInt8](repeating: $0, count: 10_000) }
    try file.replace(with: contents[0])
    let threads = contents.map { _ in BlockingThread(named: "replacing") }
    defer { for thread in threads { thread.close() } }
    try await withThrowingTaskGroup { group in
      for (thread, content) in zip(threads, contents) {
        group.addTask {
          try await thread.run {
            Result {
              for _ in 0..<50 {
                try file.replace(with: content)
                let found = try file.read(upTo: 20_000)
                #expect(found.map(contents.contains) == true, "the bytes of one of them")
              }
            }
          }.get()
        }
      }
      try await group.waitForAll()
    }
    // No draft is left.
    #expect(unsafe unlink(files.path + "/keys.json") == 0 && rmdir(files.path) == 0)
  }
}
