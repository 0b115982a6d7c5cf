/// Where a value comes from.
public enum SettingOrigin: Sendable, Hashable, CustomStringConvertible {
  /// The default of its declaration.
  case preset
  /// The configuration file.
  case file(name: String, line: Int)
  /// An environment variable.
  case variable(String)
  /// The command line.
  case option(String)

  /// `siwa.yaml:7`, `SIWA_INGRESS_LISTEN`, `--set ingress.listen`, `default`.
  public var description: String {
    switch self {
    case .preset: "default"
    case .file(let name, let line): "\(name):\(line)"
    case .variable(let name): name
    case .option(let text): text
    }
  }

  /// The order in which faults are told: as a person goes through file, variables, command line.
  var rank: (Int, Int, String) {
    switch self {
    case .file(_, let line): (0, line, "")
    case .variable(let name): (1, 0, name)
    case .option(let text): (2, 0, text)
    case .preset: (3, 0, "")
    }
  }
}
