/// The options of every command that reads the configuration: `--config FILE` and `--set NAME=VALUE`.
public struct ConfigurationOptions: Sendable, Equatable {
  /// The file that the command line names.
  public let file: String?
  /// What the command line sets, as `path=value`.
  public let overrides: [String]

  /// Reads the two options.
  public init(reading arguments: inout CommandArguments) {
    file = arguments.readIfPresent("--config", "FILE", .path, "The configuration file.")
    overrides = arguments.readAll(
      "--set", "NAME=VALUE", .text(1...65_536), "Sets one setting, whatever file and variables say; may be repeated.")
  }

  /// What the options name, together with the environment.
  public func sources(environment: [String: String]) -> ConfigurationSources {
    ConfigurationSources(file: file, environment: environment, overrides: overrides)
  }
}
