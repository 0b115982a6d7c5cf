import Configuration

extension CommandArguments {
  /// Who decides: as the command line or the environment says.
  mutating func readPerson() -> String {
    readIfPresent("--by", "NAME", .text(1...100), "Who decides it, which is kept; without it, the variable USER says.")
      ?? ConfigurationSources.processEnvironment["USER"] ?? "unknown"
  }
}
