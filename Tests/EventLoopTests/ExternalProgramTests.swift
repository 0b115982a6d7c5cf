import EventLoop
import Glibc
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(30))) struct ExternalProgramTests {
  private static let patience = Duration.seconds(300)

  private func run(
    _ script: String, _ input: [UInt8] = [], upTo size: Int = 1 << 20, within limit: Duration = patience
  ) async throws -> [UInt8] {
    let thread = BlockingThread(named: "external")
    defer { thread.close() }
    return try await thread.run {
      try ExternalProgram(["/bin/sh", "-c", script], environment: ["NAME": "a value"])
        .answer(to: input, upTo: size, within: limit)
    }
  }

  @Test func answersWhatTheProgramWrites() async throws {
    #expect(try await run("tr a-z A-Z", Array("hello".utf8)) == Array("HELLO".utf8))
    #expect(try await run("printf %s \"$NAME${HOME-}\"") == Array("a value".utf8))
    #expect(try await run("exec >&-; sleep 0.1") == [])
  }

  /// More than any pipe holds, in both directions at once.
  @Test func neitherSideWaitsForTheOther() async throws {
    let input = [UInt8](repeating: 7, count: 8 << 20)
    #expect(try await run("cat", input, upTo: input.count) == input)
    #expect(try await run("head -c 3", input) == [7, 7, 7])
  }

  /// The kernel lets an ordinary user's pipes have 64 MiB together, those of other programs and containers among them.
  @Test(.enabled("where another user can be") { getuid() == 0 }) func aUserWithManyPipesHasProgramsToo() async {
    await #expect(processExitsWith: .success) {
      try #require(setuid(65_534) == 0)
      for _ in 0..<100 { _ = try ChildProcess.Pipe() }
      let program = ExternalProgram(["/bin/cat"], environment: [:])
      #expect(try program.answer(to: [7], upTo: 1, within: .seconds(300)) == [7])
    }
  }

  @Test(arguments: [
    ("echo no >&2; echo such key >&2; exit 3", ExternalProgram.Failure.exit(code: 3, words: "no such key")),
    ("kill -9 $$", .signal(9)), ("head -c 100000 /dev/zero", .tooLong), ("cat; yes", .tooLong),
  ])
  func saysWhyThereIsNoAnswer(_ script: String, _ failure: ExternalProgram.Failure) async throws {
    await #expect(throws: failure) { try await run(script, upTo: 1024) }
  }

  @Test func saysThatThereIsNoSuchProgram() async throws {
    let program = ExternalProgram(["/no/such/program"], environment: [:])
    #expect(throws: ExternalProgram.Failure.system(SystemError(code: 2))) {
      try program.answer(to: [], upTo: 1, within: Self.patience)
    }
  }

  /// What it has started goes with it: otherwise its output would stay open.
  @Test(arguments: ["sleep 1000", "sleep 1000 & sleep 1000", "exec >&- 2>&-; sleep 1000"])
  func killsWhatTakesTooLong(_ script: String) async throws {
    await #expect(throws: ExternalProgram.Failure.deadline) { try await run(script, within: .milliseconds(50)) }
  }
}
