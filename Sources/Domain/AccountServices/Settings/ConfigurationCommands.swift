package import Configuration

/// `siwa config check`: whether the programs would start, and with what.
package struct ConfigurationCheck: Command {
  /// The words that start it.
  package static let name = "config check"
  /// What it does.
  package static let summary = "Says what each program would use, and from where; and all that is wrong with it."
  /// What its exit code means.
  package static let details = "Exit code 1 if a program would not start. Secrets are never shown.\n"
  /// How it is used.
  package static let examples = [
    CommandExample("siwa config check", "Checks /etc/siwa/siwa.yaml and the environment."),
    CommandExample(
      "siwa config check --config deploy/siwa.yaml --program siwa-ingress", "Checks a file for one of the programs."),
  ]

  private let options: ConfigurationOptions
  private let programs: [String]

  /// Reads the arguments.
  package init(reading arguments: inout CommandArguments) {
    options = ConfigurationOptions(reading: &arguments)
    programs = arguments.readAll("--program", "NAME", .program, "Only this program; may be repeated.")
  }

  /// Says it.
  package func run() async -> ExitCode {
    let sources = options.sources(environment: ConfigurationSources.processEnvironment)
    let report = ConfigurationSchema.siwa.check(sources, programs: programs)
    Terminal.say("\(report)", terminator: "")
    return report.isUsable ? .success : .failure
  }
}

/// `siwa config list`: every setting there is.
package struct ConfigurationList: Command {
  /// The words that start it.
  package static let name = "config list"
  /// What it does.
  package static let summary = "Lists every setting, as the Markdown table of docs/settings.md."
  /// How it is used.
  package static let examples = [CommandExample("siwa config list", "What can be set, its default, and what it means.")]

  /// Reads the arguments.
  package init(reading arguments: inout CommandArguments) {}

  /// Says it.
  package func run() async -> ExitCode {
    Terminal.say(ConfigurationSchema.siwa.markdownTable, terminator: "")
    return .success
  }
}

extension SettingType where Value == String {
  fileprivate static var program: SettingType {
    let names = ConfigurationSchema.siwa.programs.map(\.name)
    return SettingType(
      "program", expected: names.joined(separator: ", "), standIn: "", show: { $0 },
      parse: { names.contains($0) ? $0 : nil })
  }
}
