import EventLoop
import Foundation

/// A program of another's that a test runs.
public enum Command {
  /// What running it came to.
  public struct Outcome: Sendable, CustomStringConvertible {
    /// 0 unless something went wrong.
    public let exitCode: Int32
    /// What it wrote, to its standard output and to its standard error.
    public let output: String

    /// All of it, for a failed expectation.
    public var description: String { "exit code \(exitCode): \(output)" }
  }

  /// Runs the program of that name on `PATH` with `input` as its standard input and waits for its end, on a thread of
  /// its own: the loop turns meanwhile.
  public static func run(_ name: String, _ arguments: [String], input: String = "") async throws -> Outcome {
    let thread = BlockingThread(named: "test-command")
    return try await thread.run {
      let directory = TemporaryDirectory()
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = [name] + arguments
      process.standardInput = try FileHandle(
        forReadingFrom: URL(fileURLWithPath: directory.write("input", input)))
      let output = Pipe()
      process.standardOutput = output
      process.standardError = output
      try process.run()
      let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
      process.waitUntilExit()
      return Outcome(exitCode: process.terminationStatus, output: String(decoding: bytes, as: UTF8.self))
    }
  }
}
