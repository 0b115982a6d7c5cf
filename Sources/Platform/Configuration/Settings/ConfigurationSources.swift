import Glibc

/// Where settings come from, weakest first: a file, the environment, the command line.
public struct ConfigurationSources: Sendable {
  /// The path of the file; nil for the default one, which may be missing.
  public var file: String?
  /// The environment's variables.
  public var environment: [String: String]
  /// What the command line sets, as `path=value`; of two with the same path the later one counts.
  public var overrides: [String]

  /// The given sources.
  public init(file: String? = nil, environment: [String: String] = [:], overrides: [String] = []) {
    (self.file, self.environment, self.overrides) = (file, environment, overrides)
  }

  /// The environment of this process.
  public static var processEnvironment: [String: String] {
    var variables: [String: String] = [:]
    var next = unsafe environ
    while let entry = unsafe next.pointee {
      let parts = unsafe String(cString: entry).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
      unsafe next += 1
    }
    return variables
  }
}
