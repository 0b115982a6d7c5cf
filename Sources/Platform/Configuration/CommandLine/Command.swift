/// Something that a person starts from the command line.
///
/// Like settings, arguments are declared where they are read, in `init(reading:)`, whatever the others say: from that
/// one place come parsing and `--help`.
public protocol Command: Sendable {
  /// The words that start it, after the program's name: `notify`, `config check`. Empty where the program does one
  /// thing only.
  static var name: String { get }
  /// What it does, in one line.
  static var summary: String { get }
  /// What `--help` says after the options.
  static var details: String { get }
  /// How it is used; at least one.
  static var examples: [CommandExample] { get }

  /// Reads the arguments. What is faulty is collected in `arguments`, and the value made here is then never used.
  init(reading arguments: inout CommandArguments)

  /// Does it.
  func run() async -> ExitCode
}

extension Command {
  /// Nothing.
  public static var details: String { "" }
}

/// A use of a command that teaches it.
public struct CommandExample: Sendable {
  let line: String
  let meaning: String

  /// The whole line as it is typed, and what it does.
  public init(_ line: String, _ meaning: String) { (self.line, self.meaning) = (line, meaning) }
}

/// What a program tells its caller when it ends.
public enum ExitCode: Int32, Sendable {
  /// Done.
  case success = 0
  /// It failed.
  case failure = 1
  /// It was used wrongly: the command line or the configuration has to change first.
  case misuse = 2
  /// It could not ask whom it had to: nothing is known.
  case unreachable = 3
}
