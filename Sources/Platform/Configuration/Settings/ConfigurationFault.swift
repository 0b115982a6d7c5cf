/// Something in the configuration that a person has to look at: where it stands, and what was expected there.
public struct ConfigurationFault: Sendable, Hashable, CustomStringConvertible {
  /// Where the value comes from; the default's origin where there is none.
  public let origin: SettingOrigin
  /// The setting, where it is known.
  public let setting: String?
  /// What was expected and what was found; never the value of a secret.
  public let message: String

  /// `siwa.yaml:7: ingress.listen: expected …, found "…"`.
  public var description: String {
    switch (origin, setting) {
    case (.preset, let setting?): "\(setting): \(message)"
    case (.file, let setting?): "\(origin): \(setting): \(message)"
    // A variable and an option say by their names which setting they are.
    case (.preset, nil): message
    default: "\(origin): \(message)"
    }
  }
}

/// All that is wrong with a configuration.
public struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The faults, in the order of the file, then of the variables, then of the command line; at least one.
  public let faults: [ConfigurationFault]

  /// One fault a line.
  public var description: String { faults.map(\.description).joined(separator: "\n") }
}
