public import EventLoop
public import Glibc

/// A program that a test started: one of ours, or another that talks to ours. It never outlives the test, nor the
/// process that runs the tests.
@Loop
public final class RunningProgram {
  /// What a test waited for did not come.
  public struct Failure: Error, CustomStringConvertible {
    /// What it was, with all that the program has written.
    public let description: String
  }

  /// How it ended.
  public enum End: Sendable, Equatable {
    /// With this code.
    case exit(Int32)
    /// By this signal.
    case signal(Int32)
  }

  /// What it has written to its standard output so far.
  public var output: String { String(decoding: outputPipe.received, as: UTF8.self) }
  /// What it has written to its standard error so far.
  public var errors: String { String(decoding: errorPipe.received, as: UTF8.self) }

  /// The last whole line of its standard output, without its newline; nil before the first.
  public var lastOutputLine: String? {
    guard let end = outputPipe.received.lastIndex(of: UInt8(ascii: "\n")) else { return nil }
    let start = outputPipe.received[..<end].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    return String(decoding: outputPipe.received[start..<end], as: UTF8.self)
  }
  /// Whether it has ended, or at least closed its output.
  public var hasEnded: Bool { outputPipe.hasEnded && errorPipe.hasEnded }

  private let name: String
  /// The number of its process.
  public nonisolated let identifier: pid_t
  private let outputPipe: ProgramOutput
  private let errorPipe: ProgramOutput
  private var input: CInt?
  private let ending: ProcessEnd
  private var end: End?

  /// Runs `body` with one of our programs, which lies beside the tests, then kills it if it still runs.
  public static func run<Value>(
    _ name: String, _ arguments: [String], _ environment: [String: String] = [:],
    _ body: @Loop (RunningProgram) async throws -> Value
  ) async throws -> Value {
    try await run(path: path(of: name), arguments, environment, body)
  }

  /// Where one of our programs lies: in the folder that `PROGRAMS` in the environment names, if it is there; otherwise
  /// beside the tests.
  public nonisolated static func path(of name: String) -> String {
    guard let chosen = unsafe getenv("PROGRAMS") else { return "\(folder)/\(name)" }
    let path = unsafe String(cString: chosen) + "/\(name)"
    return unsafe access(path, X_OK) == 0 ? path : "\(folder)/\(name)"
  }

  /// Runs `body` with the program at `path`, or on the path of the system, then kills it if it still runs.
  public static func run<Value>(
    path: String, _ arguments: [String], _ environment: [String: String] = [:],
    _ body: @Loop (RunningProgram) async throws -> Value
  ) async throws -> Value {
    let program = try RunningProgram(path, arguments, environment)
    let result: Result<Value, any Error>
    do { result = .success(try await body(program)) } catch { result = .failure(error) }
    await program.kill()
    return try result.get()
  }

  /// Runs the program at `path` to its end, and returns its outcome.
  public static func finish(
    path: String, _ arguments: [String], input: String = ""
  ) async throws -> (end: End, output: String, errors: String) {
    try await run(path: path, arguments) { program in
      try program.write(input)
      program.endInput()
      return try await program.outcome()
    }
  }

  /// `opening: 3 of 4`, `20%  1 of 5 records  3/s, 0:02 left`, `7 lines  3/s`, each with its newline.
  private nonisolated static var progress: Regex<Substring> {
    #/
    (?m)^(?:
      (?:copying|checking|opening|wrapping|moving|counting|pruning|reading):\ [0-9]+\ of\ [0-9]+
      |[0-9]+%?\ .+\ \ [0-9]+/s.*
    )\n
    /#
  }

  /// Starts the program at `path`, for a test that keeps it longer than one call; `kill` ends it, and so does the end of
  /// the tests.
  ///
  /// A program that `endsWithItsInput` is left to clean up behind itself when the tests end; any other one is killed.
  public init(
    _ path: String, _ arguments: [String], _ environment: [String: String] = [:], endsWithItsInput: Bool = false
  ) throws {
    name = String(path.split(separator: "/").last ?? "")
    let (input, output, errors) = (try ChildProcess.Pipe(), try ChildProcess.Pipe(), try ChildProcess.Pipe())
    // setpriv has the kernel kill the program when the thread that started it, the loop's, is gone; it stays the same
    // process. A crash of a program that is meant to end must not draw its backtrace.
    let environment = environment.merging(Self.inherited) { own, _ in own }
    let leash = endsWithItsInput ? [] : ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"]
    identifier = try ChildProcess.spawn(
      leash + [path] + arguments, environment, (input.reading, output.writing, errors.writing), inGroupOfItsOwn: false)
    ending = ProcessEnd(of: identifier)
    for number in [input.reading, output.writing, errors.writing] { close(number) }
    self.input = input.writing
    outputPipe = try ProgramOutput(output.reading)
    errorPipe = try ProgramOutput(errors.reading)
  }

  isolated deinit { endInput() }

  /// Waits for a line on the standard error that holds all of `words`, any line where there are none, and returns it
  /// without its newline.
  public func line(with words: String...) async throws -> String {
    try await line(of: errorPipe, words)
  }

  /// The same on the standard output.
  public func outputLine(with words: String...) async throws -> String {
    try await line(of: outputPipe, words)
  }

  /// Waits until `condition` holds, and asks with such a pause between. Throws what the program has written where it ends
  /// before that, as nothing more comes of it, or takes longer than anything should.
  public func until(
    every pause: Duration = .milliseconds(10), _ condition: @Loop () async throws -> Bool
  ) async throws {
    let end = MonotonicTime.now + .seconds(300)
    while true {
      let hadEnded = hasEnded
      if try await condition() { return }
      if hadEnded { throw failure("has ended") }
      guard .now < end else { throw failure("has not done what was waited for") }
      try await Loop.sleep(for: pause)
    }
  }

  /// Sends a signal.
  public func signal(_ number: Int32) { ending.signal(number) }

  /// Writes to its standard input; the loop waits while the pipe, of a megabyte where it is needed and to be had, is full.
  /// What has ended reads nothing any more, and its end says why.
  public func write(_ text: String) throws {
    guard let input else { throw Failure(description: "the input of \(name) has ended") }
    var rest = Array(text.utf8)[...]
    // F_SETPIPE_SZ, which Glibc's module lacks.
    if rest.count > 1 << 16 { _ = fcntl(input, 1031, 1 << 20) }
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(input, $0.baseAddress, $0.count) }
      if count < 0, errno == EPIPE { return }
      guard count >= 0 || errno == EINTR else {
        throw Failure(description: "\(name) does not read: \(SystemError.current)")
      }
      rest = rest.dropFirst(max(count, 0))
    }
  }

  /// Ends its standard input.
  public func endInput() {
    if let input { close(input) }
    input = nil
  }

  /// Waits until it has ended, and says how.
  public func untilEnd() async throws -> End {
    for pipe in [outputPipe, errorPipe] {
      guard try await pipe.wait(until: { pipe.hasEnded }) else { throw failure("has not ended") }
    }
    return await reap()
  }

  /// Waits until it has ended, and returns how, and what it has written. Its errors are without the lines in which `siwa`
  /// says how far it is: whether there are any depends on how busy the machine is.
  public func outcome() async throws -> (end: End, output: String, errors: String) {
    let end = try await untilEnd()
    return (end, output, errors.replacing(Self.progress, with: ""))
  }

  /// Kills it if it still runs, and waits for its end. What it wrote last may not have been read.
  public func kill() async {
    endInput()
    signal(SIGKILL)
    _ = await reap()
  }

  /// Kills it, and waits until all is read that it has written. Programs that it has started must have ended.
  public func killAndRead() async throws {
    signal(SIGKILL)
    _ = try await untilEnd()
  }

  private func reap() async -> End {
    if let end { return end }
    let status = await ending.status()
    // As the macros of wait(2) take it apart.
    let end: End = status & 0x7f == 0 ? .exit(status >> 8 & 0xff) : .signal(status & 0x7f)
    self.end = end
    return end
  }

  private func line(of pipe: ProgramOutput, _ words: [String]) async throws -> String {
    var found: String?
    let isThere = try await pipe.wait {
      let lines = pipe.received.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
      found = lines.lazy.map { String(decoding: $0, as: UTF8.self) }.first { line in
        words.allSatisfy { line.contains($0) }
      }
      return found != nil
    }
    guard isThere, let found else { throw failure("has not written \(words.joined(separator: " … "))") }
    return found
  }

  private func failure(_ what: String) -> Failure {
    Failure(description: "\(name) \(what). Its output: \(output)\nIts errors: \(errors)")
  }

  /// What every program gets of the tests' own environment, and nothing else of it.
  private static let inherited: [String: String] = {
    var environment = ["SWIFT_BACKTRACE": "enable=no"]
    for name in ["PATH", "JAVA_HOME", "TMPDIR"] {
      if let value = unsafe getenv(name) { environment[name] = unsafe String(cString: value) }
    }
    return environment
  }()

  /// Where the tests' own executable lies, and ours beside it.
  private nonisolated static let folder: String = {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink("/proc/self/exe", &path, path.count)
    let text = String(decoding: path.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.split(separator: "/").dropLast().map { "/\($0)" }.joined()
  }()
}
