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
    /// 0 unless something went wrong.
    public let exitCode: Int32
    /// What it wrote to its standard output; the standard error goes to the test's own.
    public let output: [UInt8]
  }

  /// Runs the script at `path` in the repository with `input` as its standard input, and waits for it to end.
  public static func run(_ path: String, _ arguments: [String] = [], input: [UInt8] = []) throws -> Outcome {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("python-input-\(UUID().uuidString)")
    try Data(input).write(to: file)
    defer { unsafe unlink(file.path) }
    let output = Pipe()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: interpreter)
    process.arguments = [Repository.root + "/" + path] + arguments
    process.standardInput = try FileHandle(forReadingFrom: file)
    process.standardOutput = output
    try process.run()
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Outcome(exitCode: process.terminationStatus, output: [UInt8](bytes))
  }
}
