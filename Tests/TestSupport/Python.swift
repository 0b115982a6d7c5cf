import Foundation
public import Testing

/// Other implementations, to hold ours against: a Python with the packages of `Tests/requirements.txt`.
///
/// `Tests/make-python`, which `make test` calls, puts it into `.build/python`.
public enum Python {
  /// Skips a test, visibly, where that Python is not there.
  public static var isThere: ConditionTrait {
    .enabled("needs .build/python: run Tests/make-python") { FileManager.default.isExecutableFile(atPath: interpreter) }
  }

  /// The interpreter, for a test that starts it itself.
  public static let interpreter = Repository.root + "/.build/python/bin/python"

  /// What running a script came to.
  public struct Outcome: Sendable {
    /// `.exit(0)` unless something went wrong.
    public let end: RunningProgram.End
    /// What it wrote to its standard output.
    public let output: [UInt8]
    /// What it wrote to its standard error: why it failed.
    public let errors: String
  }

  /// Runs the script at `path` in the repository with `input` as its standard input, and waits for it to end.
  public static func run(_ path: String, _ arguments: [String] = [], input: [UInt8] = []) async throws -> Outcome {
    let run = try await RunningProgram.finish(
      path: interpreter, [Repository.root + "/" + path] + arguments, input: String(decoding: input, as: UTF8.self))
    return Outcome(end: run.end, output: Array(run.output.utf8), errors: run.errors)
  }
}
