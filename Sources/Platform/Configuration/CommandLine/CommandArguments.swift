/// The arguments while a `Command` reads them.
///
/// ```swift
/// type = arguments.read("TYPE", .choice(EventType.self), "What happened.")
/// to = arguments.read("--to", "URL", .url, "Where to.")
/// count = arguments.read("--count", "NUMBER", .integer(1...1000), default: 1, "How many.")
/// isOnce = arguments.flag("--once", "Ends after one of each.")
/// ```
public struct CommandArguments {
  /// An argument as it is explained to people.
  struct Declaration {
    enum Kind { case positional, option, repeatable, flag }

    let kind: Kind
    /// `TYPE`, `--to`.
    let name: String
    /// What stands for an option's value: `URL`.
    let value: String
    let isRequired: Bool
    let help: String
  }

  /// Whether nothing is to be read but all declarations are wanted.
  private let isDescribing: Bool
  private(set) var declarations: [Declaration] = []
  private(set) var faults: [String] = []
  private var positionals: ArraySlice<String> = []
  private var options: [String: [String]] = [:]

  private init(isDescribing: Bool) { self.isDescribing = isDescribing }

  /// What a command declares.
  static func declarations(of command: any Command.Type) -> [Declaration] {
    var arguments = CommandArguments(isDescribing: true)
    _ = command.init(reading: &arguments)
    return arguments.declarations
  }

  /// Takes the words apart as the declarations have it: what takes a value, what stands by itself.
  init(_ words: [String], for declarations: [Declaration]) {
    self.init(isDescribing: false)
    let expected = declarations.count { $0.kind == .positional }
    var rest = words[...]
    var isOptionPossible = true
    while let word = rest.popFirst() {
      // Options have two dashes, and an event's id may begin with one.
      let isValue = word.utf8.count > 2 && !word.hasPrefix("--") && positionals.count < expected
      guard isOptionPossible, word.hasPrefix("-"), word != "-", !isValue else {
        positionals.append(word)
        continue
      }
      if word == "--" {
        isOptionPossible = false
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      take(parts[0], parts.count == 2 ? parts[1] : nil, &rest, declarations)
    }
    for word in positionals.dropFirst(expected) { faults.append("unexpected \(word.quoted)") }
  }

  private mutating func take(
    _ name: String, _ attached: String?, _ rest: inout ArraySlice<String>, _ declarations: [Declaration]
  ) {
    guard let declaration = declarations.first(where: { $0.name == name }), declaration.kind != .positional else {
      let names = declarations.filter { $0.kind != .positional }.map(\.name) + ["--help"]
      let hint = Suggestion.nearest(to: name, among: names).map { "; did you mean \($0)?" } ?? ""
      return faults.append("unknown option \(name.quoted)\(hint)")
    }
    if declaration.kind == .flag {
      if attached != nil { faults.append("\(name) takes no value") }
      options[name] = [""]
      return
    }
    let value: String
    if let attached {
      value = attached
    } else if let next = rest.first, !next.hasPrefix("--") {
      value = rest.removeFirst()
    } else {
      return faults.append("\(name) needs a value: \(name) \(declaration.value)")
    }
    if declaration.kind == .option, options[name] != nil { faults.append("\(name) stands there twice") }
    options[name, default: []].append(value)
  }

  /// An argument without a name, by its place; all of those that must be there come first.
  public mutating func read<Value>(_ name: String, _ type: SettingType<Value>, _ help: String) -> Value {
    declare(.positional, name, "", isRequired: true, help)
    return parse(positionals.popFirst(), name, type, orMissing: true) ?? type.standIn
  }

  /// An argument without a name that may be left out.
  public mutating func readIfPresent<Value>(_ name: String, _ type: SettingType<Value>, _ help: String) -> Value? {
    declare(.positional, name, "", isRequired: false, help)
    return parse(positionals.popFirst(), name, type, orMissing: false)
  }

  /// An option that must be there. `value` is what stands for its value in the help.
  public mutating func read<Value>(
    _ name: String, _ value: String, _ type: SettingType<Value>, _ help: String
  ) -> Value {
    declare(.option, name, value, isRequired: true, help)
    return parse(options[name]?.first, name, type, orMissing: true) ?? type.standIn
  }

  /// An option that has a default.
  public mutating func read<Value>(
    _ name: String, _ value: String, _ type: SettingType<Value>, default preset: Value, _ help: String
  ) -> Value {
    declare(.option, name, value, isRequired: false, "\(help) Default: \(type.show(preset)).")
    return parse(options[name]?.first, name, type, orMissing: false) ?? preset
  }

  /// An option that may be left out.
  public mutating func readIfPresent<Value>(
    _ name: String, _ value: String, _ type: SettingType<Value>, _ help: String
  ) -> Value? {
    declare(.option, name, value, isRequired: false, help)
    return parse(options[name]?.first, name, type, orMissing: false)
  }

  /// An option that may be there any number of times.
  public mutating func readAll<Value>(
    _ name: String, _ value: String, _ type: SettingType<Value>, _ help: String
  ) -> [Value] {
    declare(.repeatable, name, value, isRequired: false, help)
    return (options[name] ?? []).compactMap { parse($0, name, type, orMissing: false) }
  }

  /// Whether an option without a value is there.
  public mutating func flag(_ name: String, _ help: String) -> Bool {
    declare(.flag, name, "", isRequired: false, help)
    return options[name] != nil
  }

  /// Says that arguments, well-formed as they are, do not go together.
  public mutating func refuse(_ message: String) {
    if !isDescribing { faults.append(message) }
  }

  private mutating func declare(
    _ kind: Declaration.Kind, _ name: String, _ value: String, isRequired: Bool, _ help: String
  ) {
    guard isDescribing else { return }
    precondition((kind == .positional) != name.hasPrefix("-"), "\(name): options begin with -")
    declarations.append(Declaration(kind: kind, name: name, value: value, isRequired: isRequired, help: help))
  }

  private mutating func parse<Value>(
    _ text: String?, _ name: String, _ type: SettingType<Value>, orMissing isRequired: Bool
  ) -> Value? {
    if isDescribing { return nil }
    guard let text else {
      if isRequired { faults.append("\(name) is missing; expected \(type.expectation)") }
      return nil
    }
    var warnings: [String] = []
    do {
      return try type.parse(SettingInput(text: text, origin: .option(name)), &warnings)
    } catch {
      faults.append("\(name): \(error.reason ?? "expected \(type.expectation), found \(error.found)")")
      return nil
    }
  }
}
