import Configuration
import Testing

struct Send: Command, Equatable {
  static let name = "send"
  static let summary = "Sends something somewhere."
  static let details = "More can be said.\n"
  static let examples = [CommandExample("post send letter --to https://example.com", "A letter.")]

  let thing: Example.Level
  let note: String?
  let to: String
  let count: Int
  let marks: [String]
  let isFast: Bool
  let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    thing = arguments.read("THING", .choice(Example.Level.self), "What.")
    note = arguments.readIfPresent("NOTE", .text(1...9), "What else.")
    to = arguments.read("--to", "URL", .url, "Where to.")
    count = arguments.read("--count", "NUMBER", .integer(1...9), default: 1, "How often.")
    marks = arguments.readAll("--mark", "TEXT", .text(1...9), "Written on it; may be repeated.")
    isFast = arguments.flag("--fast", "At once.")
    options = ConfigurationOptions(reading: &arguments)
    if isFast, count > 5 { arguments.refuse("--fast goes with a --count of 5 or less") }
  }

  func run() async -> ExitCode { count == 9 ? .failure : .success }
}

struct Check: Command {
  static let name = "box check"
  static let summary = "Checks the box."
  static let examples = [CommandExample("post box check", "It.")]
  init(reading arguments: inout CommandArguments) {}
  func run() async -> ExitCode { .success }
}

private struct Serve: Command {
  static let name = ""
  static let summary = "Serves."
  static let examples = [CommandExample("server", "It.")]
  init(reading arguments: inout CommandArguments) {}
  func run() async -> ExitCode { .success }
}

@Suite struct CommandLineTests {
  private let program = CommandLineProgram("post", "Sends and checks.", [Send.self, Check.self])

  private func misuse(_ words: [String]) -> [String] {
    guard case .misuse(let text) = program.parse(words) else { return [] }
    return text.split(separator: "\n").map(String.init)
  }

  @Test func readsEveryKindOfArgument() throws {
    let words = [
      "send", "--to=https://a/b=c", "high", "--mark", "-", "--fast", "--count", "5", "--mark", "x", "--config",
      "c.yaml",
      "--set", "a.b=c=d", "--", "--note",
    ]
    guard case .command(let command) = program.parse(words) else { throw Failure() }
    let send = try #require(command as? Send)
    #expect(send.thing == .high)
    #expect(send.note == "--note")
    #expect(send.to == "https://a/b=c")
    #expect(send.count == 5)
    #expect(send.marks == ["-", "x"])
    #expect(send.isFast)
    let sources = send.options.sources(environment: ["X": "y"])
    #expect(sources.file == "c.yaml")
    #expect(sources.overrides == ["a.b=c=d"])
    #expect(sources.environment == ["X": "y"])
  }

  /// As one event's id in 64 does.
  @Test func aValueMayBeginWithADash() throws {
    let words = ["send", "--to", "https://a", "high", "-ctTeoA9D"]
    guard case .command(let command) = program.parse(words) else { throw Failure() }
    #expect(try #require(command as? Send).note == "-ctTeoA9D")
    #expect(misuse(words + ["-another"]) == [#"post send: unknown option "-another""#, "Try 'post send --help'."])
  }

  private static let url = "an https URL"

  @Test(arguments: [
    (["send"], ["THING is missing; expected low or high", "--to is missing; expected \(url)"]),
    (
      ["send", "hi", "--to", "x"], ["THING: expected low or high, found \"hi\"", "--to: expected \(url), found \"x\""]
    ),
    (["send", "low", "--to"], ["--to needs a value: --to URL", "--to is missing; expected \(url)"]),
    (["send", "low", "--to", "--fast"], ["--to needs a value: --to URL", "--to is missing; expected \(url)"]),
    (["send", "low", "--to=https://a", "--fsat"], [#"unknown option "--fsat"; did you mean --fast?"#]),
    (["send", "low", "--to=https://a", "-f"], [#"unknown option "-f""#]),
    (["send", "low", "--to=https://a", "--fast=1"], ["--fast takes no value"]),
    (["send", "low", "--to=https://a", "--to=https://a"], ["--to stands there twice"]),
    (["send", "low", "--to=https://a", "a", "b\n"], [#"unexpected "b\n""#]),
    (["send", "low", "--to=https://a", "--count=0"], ["--count: expected a whole number from 1 to 9, found \"0\""]),
    (["send", "low", "--to=https://a", "--count=6", "--fast"], ["--fast goes with a --count of 5 or less"]),
  ]) func explainsWhatIsWrong(words: [String], faults: [String]) {
    #expect(misuse(words) == faults.map { "post send: \($0)" } + ["Try 'post send --help'."])
  }

  @Test func knowsItsCommands() {
    #expect(misuse(["sned"]) == ["post: unknown command \"sned\"; did you mean send?", "Try 'post --help'."])
    #expect(misuse(["walk"]) == ["post: unknown command \"walk\"", "Try 'post --help'."])
    #expect(misuse(["walk", "box"]).first == "post: unknown command \"walk\"")
    #expect(misuse(["box", "burn", "it"]).first == "post: unknown command \"box burn\"")
    #expect(misuse(["box"]).first == "post: which command?")
    #expect(misuse([]).first == "post: which command?")
    #expect(misuse(["--fast"]).first == "post: which command?")
    #expect(misuse(["box", "check", "it"]).first == "post box check: unexpected \"it\"")
  }

  @Test func teaches() throws {
    guard case .help(let overview) = program.parse(["-h"]),
      case .help(let help) = program.parse(["send", "x", "--help"])
    else { throw Failure() }
    #expect(
      overview == """
        usage: post COMMAND [arguments]

        Sends and checks.

        Commands:
          send       Sends something somewhere.
          box check  Checks the box.

        'post COMMAND --help' teaches a command, with examples.

        """)
    #expect(
      help == """
        usage: post send THING [NOTE] --to URL [options]

        Sends something somewhere.

        Arguments:
          THING  What.
          NOTE   What else.

        Options:
          --to URL          Where to.
          --count NUMBER    How often. Default: 1.
          --mark TEXT       Written on it; may be repeated.
          --fast            At once.
          --config FILE     The configuration file.
          --set NAME=VALUE  Sets one setting, whatever file and variables say; may be repeated.
          --help            This text.

        Examples:
          post send letter --to https://example.com
              A letter.

        More can be said.

        """)
  }

  @Test func endsWithTheExitCodesThatScriptsExpect() async {
    #expect(await program.run(["send", "low", "--to=https://a"]) == .success)
    #expect(await program.run(["send", "low", "--to=https://a", "--count=9"]) == .failure)
    #expect(await program.run(["box", "check", "--help"]) == .success)
    #expect(await program.run(["nothing"]) == .misuse)
    #expect(ExitCode.success.rawValue == 0 && ExitCode.failure.rawValue == 1 && ExitCode.misuse.rawValue == 2)
  }

  @Test func runsAProgramOfOneCommandWithoutAName() async {
    let server = CommandLineProgram("server", Serve.self)
    #expect(await server.run([]) == .success)
    guard case .misuse(let text) = server.parse(["now"]) else { return #expect(Bool(false)) }
    #expect(text == "server: unexpected \"now\"\nTry 'server --help'.\n")
  }
}

private struct Failure: Error {}
