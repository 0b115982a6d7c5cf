/// A program as its command line sees it: one command, or several by their names.
public struct CommandLineProgram: Sendable {
  private let name: String
  private let summary: String
  private let commands: [any Command.Type]

  /// A program that does one thing.
  public init(_ name: String, _ command: any Command.Type) {
    (self.name, summary, commands) = (name, command.summary, [command])
    precondition(command.name.isEmpty, "the one command of a program has no name")
  }

  /// A program with several commands, in the order in which its help lists them.
  public init(_ name: String, _ summary: String, _ commands: [any Command.Type]) {
    (self.name, self.summary, self.commands) = (name, summary, commands)
    precondition(commands.allSatisfy { !$0.name.isEmpty }, "a command without a name")
  }

  /// What a command line asks for.
  public enum Outcome {
    /// This command, with its arguments.
    case command(any Command)
    /// To be told how it works.
    case help(String)
    /// Nothing that makes sense; why, and where to look.
    case misuse(String)
  }

  /// Parses the words, runs the command, and returns the exit code. What is asked for goes to standard output, what is
  /// wrong to standard error. What was asked for and could not be written is no success.
  public func run(_ words: [String]) async -> ExitCode {
    let exit = await end(of: words)
    guard let failure = Terminal.failure else { return exit }
    Terminal.complain("\(name): the output could not be written: \(failure)")
    return exit == .success ? .failure : exit
  }

  private func end(of words: [String]) async -> ExitCode {
    switch parse(words) {
    case .command(let command): return await command.run()
    case .help(let text):
      Terminal.say(text, terminator: "")
      return .success
    case .misuse(let text):
      Terminal.complain(text, terminator: "")
      return .misuse
    }
  }

  /// What the words after the program's name ask for.
  public func parse(_ words: [String]) -> Outcome {
    let isHelp = words.prefix { $0 != "--" }.contains { $0 == "--help" || $0 == "-h" }
    guard let command = command(for: words) else {
      // The words that begin a command's name: `siwa config`, without saying which of them.
      let known = Array(words.prefix { !$0.hasPrefix("-") })
      let group = commands(beginningWith: known[...])
      if !group.isEmpty {
        let text = overview(of: group)
        return isHelp ? .help(text) : .misuse("\(name): which command?\n\n\(text)")
      }
      let unknown = known.indices.map { known[...$0] }.first { commands(beginningWith: $0).isEmpty } ?? []
      let hint = Suggestion.nearest(to: known.joined(separator: " "), among: commands.map { $0.name })
      let question = hint.map { "; did you mean \($0)?" } ?? ""
      return .misuse(
        "\(name): unknown command \(unknown.joined(separator: " ").quoted)\(question)\nTry '\(name) --help'.\n")
    }
    if isHelp { return .help(help(for: command)) }
    let rest = Array(words.dropFirst(command.words.count))
    var arguments = CommandArguments(rest, for: CommandArguments.declarations(of: command))
    let value = command.init(reading: &arguments)
    guard arguments.faults.isEmpty else {
      let title = title(of: command)
      let lines = arguments.faults.map { "\(title): \($0)\n" }.joined()
      return .misuse("\(lines)Try '\(title) --help'.\n")
    }
    return .command(value)
  }

  private func command(for words: [String]) -> (any Command.Type)? {
    commands.filter { Array(words.prefix($0.words.count)) == $0.words }.max { $0.words.count < $1.words.count }
  }

  private func commands(beginningWith words: ArraySlice<String>) -> [any Command.Type] {
    commands.filter { $0.words.starts(with: words) }
  }

  private func title(of command: any Command.Type) -> String {
    command.name.isEmpty ? name : "\(name) \(command.name)"
  }

  private func overview(of commands: [any Command.Type]) -> String {
    let rows = commands.map { ($0.name, $0.summary) }
    return """
      usage: \(name) COMMAND [arguments]

      \(summary)

      Commands:
      \(table(rows))
      '\(name) COMMAND --help' teaches a command, with examples.

      """
  }

  private func help(for command: any Command.Type) -> String {
    let declarations = CommandArguments.declarations(of: command)
    let positionals = declarations.filter { $0.kind == .positional }
    let options = declarations.filter { $0.kind != .positional }
    let words =
      positionals.map { $0.isRequired ? $0.name : "[\($0.name)]" }
      + options.filter(\.isRequired).map { "\($0.name) \($0.value)" } + ["[options]"]
    var text = "usage: \(title(of: command)) \(words.joined(separator: " "))\n\n\(command.summary)\n\n"
    if !positionals.isEmpty { text += "Arguments:\n\(table(positionals.map { ($0.name, $0.help) }))\n" }
    let rows = options.map { ($0.kind == .flag ? $0.name : "\($0.name) \($0.value)", $0.help) }
    text += "Options:\n\(table(rows + [("--help", "This text.")]))\nExamples:\n"
    for example in command.examples { text += "  \(example.line)\n      \(example.meaning)\n" }
    return command.details.isEmpty ? text : "\(text)\n\(command.details)"
  }

  private func table(_ rows: [(String, String)]) -> String {
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { name, meaning in
      "  \(name)\(String(repeating: " ", count: width - name.count))  \(meaning)\n"
    }.joined()
  }
}

extension Command {
  fileprivate static var words: [String] { name.split(separator: " ").map(String.init) }
}
