import Foundation
import TestSupport
package import Testing
package import TransparencyLog

/// Go's `golang.org/x/mod/sumdb` as the judge of our logs: `Go/judge.go`, built with Debian's packages.
package enum GoJudge {
  /// Skips a test, visibly, where Go is not there.
  package static var isThere: ConditionTrait {
    .enabled("needs Debian's golang-go and golang-golang-x-mod-dev") {
      FileManager.default.fileExists(atPath: "/usr/share/gocode/src/golang.org/x/mod/sumdb/tlog/tlog.go")
        && FileManager.default.isExecutableFile(atPath: "/usr/bin/go")
    }
  }

  /// Says what it thinks of a log in a directory that may have shown these checkpoints before, which are files: "ok SIZE",
  /// or "no PATH, entry N: reason".
  package static func verify(
    _ directory: String, _ origin: String, _ keys: [VerifierKey], since older: [String] = []
  ) async throws -> String {
    try await run(
      ["log"] + older.map { "--since=\($0)" } + [directory, origin] + keys.map(\.text), accepting: [0, 1])
  }

  /// What it says to each of the lines.
  package static func answers(_ arguments: [String], to lines: [String]) async throws -> [String] {
    let output = try await run(arguments, input: lines.map { "\($0)\n" }.joined(), accepting: [0])
    return output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// Its output, without the last newline.
  package static func run(_ arguments: [String], input: String = "", accepting codes: [Int32]) async throws -> String {
    let outcome = try await RunningProgram.finish(path: built.value, arguments, input: input)
    guard codes.contains(where: { outcome.end == .exit($0) }) else {
      throw RunningProgramError(description: "\(outcome)")
    }
    return outcome.output.hasSuffix("\n") ? String(outcome.output.dropLast()) : outcome.output
  }

  /// Go's own cache lies beside the program, so that building it again costs nothing.
  private static let built = Task {
    let (folder, packages) = (Repository.root + "/.build/go", "/usr/share/gocode")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let build = try await RunningProgram.run(
      path: "/usr/bin/go",
      ["build", "-o", "\(folder)/judge", Repository.root + "/Tests/LogSupport/Go/judge.go"],
      ["GO111MODULE": "off", "GOFLAGS": "", "GOPATH": packages, "GOCACHE": "\(folder)/cache", "GOPROXY": "off"]
    ) { program in
      (try await program.untilEnd(), program.errors)
    }
    guard build.0 == .exit(0) else { throw RunningProgramError(description: build.1) }
    return "\(folder)/judge"
  }
}

/// Why the judge has not judged.
struct RunningProgramError: Error, CustomStringConvertible {
  let description: String
}
