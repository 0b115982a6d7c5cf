import EventLoop
import Glibc
import TestSupport
import Testing

/// `siwa accounts import`, as an operator uses it.
@Loop @Suite(.timeLimit(.minutes(30))) struct AccountsCommandTests {
  private let files = TemporaryDirectory()
  /// The configuration's path.
  private let path: String

  init() {
    path = files.write(
      "siwa.yaml",
      """
      teams:
        A1B2C3D4E5: { audiences: [com.example.app] }
      store: { sqlite: store.sqlite, master-key: master-key }
      """)
  }

  private func siwa(
    _ words: String..., input: String = ""
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.finish(
      path: RunningProgram.path(of: "siwa"), words + (words[1] == "create-key" ? [] : ["--config", path]), input: input)
  }

  private func line(_ name: String, _ client: String = "com.example.app") -> String {
    #"{"sub":"\#(name)","client_id":"\#(client)","signed_in_at":1700000000,"refresh_token":"r.\#(name).token"}"#
  }

  @Test func bringsWhatAnApplicationHasKeptIntoTheStore() async throws {
    let input = "\(line("ada"))\n\(line("eve", "org.example.stranger"))\n\n\(line("bob"))"
    let early = try await siwa("accounts", "import", input: input)
    #expect(early.end == .exit(2) && early.errors.contains("master-key"), "\(early)")
    #expect(try await siwa("store", "create-key", files.path + "/master-key").end == .exit(0))
    #expect(try await siwa("store", "begin").end == .exit(0))

    let rehearsal = try await siwa("accounts", "import", "--dry-run", input: input)
    #expect(
      rehearsal.end == .exit(1) && rehearsal.output.hasSuffix("Refused   1\nNothing was changed\n"), "\(rehearsal)")
    #expect(try await siwa("store", "integrity").output.contains("Tokens    0\n"))

    let taken = try await siwa("accounts", "import", input: input)
    #expect(taken.end == .exit(1), "\(taken)")
    #expect(taken.output == "Lines     4\nSign-ins  2\nTokens    2\nEnded     0\nRefused   1\n")
    #expect(
      taken.errors.hasSuffix("siwa: line 2: client_id: stands in no teams.TEAM.audiences of the configuration\n"),
      "\(taken.errors)")
    for secret in ["ada", "eve", "bob", "token\""] { #expect(!taken.errors.contains(secret)) }
    let rest = try await siwa("accounts", "import", "--from-line", "3", input: input)
    #expect(rest.end == .exit(0) && rest.output.hasPrefix("Lines     4\nSign-ins  1\nTokens    1\n"), "\(rest)")
    let nothing = try await siwa("accounts", "import", "--from-line", "5", input: input)
    #expect(nothing.end == .exit(0) && nothing.output.hasPrefix("Lines     4\nSign-ins  0\n"), "\(nothing)")
    let beyond = try await siwa("accounts", "import", "--from-line", "6", input: input)
    #expect(beyond.end == .exit(2) && beyond.output == "", "\(beyond)")
    #expect(beyond.errors == "siwa: --from-line 6: the input has 4 lines\n", "\(beyond)")
    let whole = try await siwa("store", "integrity")
    #expect(whole.end == .exit(0) && whole.output.contains("Accounts  2\nTokens    2\n"), "\(whole)")
  }

  @Test func linesAreTakenAsTheyCome() async throws {
    #expect(try await siwa("store", "create-key", files.path + "/master-key").end == .exit(0))
    #expect(try await siwa("store", "begin").end == .exit(0))
    try await RunningProgram.run("siwa", ["accounts", "import", "--config", path]) { program in
      for (number, name) in ["ada", "bob"].enumerated() {
        try program.write(line(name) + "\n")
        try await program.until(every: .milliseconds(200)) {
          try await siwa("store", "integrity").output.contains("Tokens    \(number + 1)\n")
        }
      }
      program.endInput()
      #expect(try await program.untilEnd() == .exit(0))
    }
  }

  /// When the store was written last, in nanoseconds.
  private func lastWrite() -> Int {
    var status = stat()
    guard unsafe stat(files.path + "/store.sqlite-wal", &status) == 0 else { return 0 }
    return status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
  }

  /// Killed while it writes, and begun again from the beginning: every token is there once.
  @Test func whateverItIsKilledAtTheSameAgainCompletesIt() async throws {
    #expect(try await siwa("store", "create-key", files.path + "/master-key").end == .exit(0))
    #expect(try await siwa("store", "begin").end == .exit(0))
    let lines = (0..<4000).map { line("person-\($0)") + "\n" }
    for number in 1...4 {
      try await RunningProgram.run("siwa", ["accounts", "import", "--config", path]) { program in
        // Half a line is what a pipe may hold when its writer is killed.
        let before = lastWrite()
        try program.write(lines[..<(number * 1000)].joined() + "{\"sub\":")
        try await program.until { lastWrite() != before }
        program.signal(SIGKILL)
        #expect(try await program.untilEnd() == .signal(SIGKILL))
      }
    }
    let taken = try await siwa("accounts", "import", input: lines.joined())
    #expect(taken.end == .exit(0) && taken.output.contains("Tokens    4000\n"), "\(taken)")
    let whole = try await siwa("store", "integrity")
    #expect(whole.end == .exit(0) && whole.output.contains("Accounts  4000\nTokens    4000\n"), "\(whole)")
  }
}
