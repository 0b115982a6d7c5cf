/// All settings of all programs that share one configuration file.
///
/// What one program does not use it ignores; what none of them knows is a fault.
public struct ConfigurationSchema: Sendable {
  /// A program and what it reads.
  public struct Program: Sendable {
    /// The name by which it is started.
    public let name: String
    /// Its settings in the order in which it reads them.
    public let declarations: [SettingDeclaration]
    let read: @Sendable (inout Settings) -> Void
  }

  /// The programs.
  public let programs: [Program]
  /// Every setting once.
  public let declarations: [SettingDeclaration]
  let prefix: String
  let defaultFile: String

  /// A schema without programs. The names of variables begin with `prefix` and an underscore; `defaultFile` is read,
  /// if it exists, where no other file is named.
  public init(prefix: String, defaultFile: String) {
    (self.prefix, self.defaultFile, programs, declarations) = (prefix + "_", defaultFile, [], [])
  }

  /// The same schema with one more program, which reads `Configuration` at start.
  public func adding<Configuration: Configurable>(_ name: String, _ type: Configuration.Type) -> ConfigurationSchema {
    var settings = Settings(describingWithPrefix: prefix)
    _ = Configuration(reading: &settings)
    let program = Program(name: name, declarations: settings.declarations) { _ = Configuration(reading: &$0) }
    return ConfigurationSchema(self, adding: program)
  }

  private init(_ schema: ConfigurationSchema, adding program: Program) {
    (prefix, defaultFile) = (schema.prefix, schema.defaultFile)
    programs = schema.programs + [program]
    var declarations = schema.declarations
    for new in program.declarations {
      if let known = declarations.first(where: { $0.path == new.path }) {
        precondition(known == new, "\(new.path) is declared in two ways")
      } else {
        precondition(!declarations.contains { $0.variable == new.variable }, "\(new.variable) means two settings")
        declarations.append(new)
      }
    }
    self.declarations = declarations
  }

  /// Reads the configuration of one program. The error holds all faults.
  public func load<Configuration: Configurable>(
    _ type: Configuration.Type, from sources: ConfigurationSources
  ) throws(ConfigurationError) -> Loaded<Configuration> {
    let values = SourceValues(sources, prefix: prefix, defaultFile: defaultFile)
    var settings = Settings(reading: values)
    let value = Configuration(reading: &settings)
    let faults = merge(structuralFaults(of: values), settings.faults, of: values)
    guard faults.isEmpty else { throw ConfigurationError(faults: faults) }
    return Loaded(value: value, warnings: settings.warnings)
  }

  /// A configuration without faults.
  public struct Loaded<Configuration: Configurable>: Sendable {
    /// The configuration.
    public let value: Configuration
    /// What is worth a look, and for the program to log.
    public let warnings: [ConfigurationFault]
  }

  /// Faults in the order in which they are told. Where the file could not be read, what it would have set is not missing.
  func merge(
    _ structural: [ConfigurationFault], _ read: [ConfigurationFault], of values: SourceValues
  ) -> [ConfigurationFault] {
    let told = values.isFileUsable ? read : read.filter { $0.origin != .preset }
    var seen: Set<ConfigurationFault> = []
    return (structural + told).filter { seen.insert($0).inserted }.sorted { $0.origin.rank < $1.origin.rank }
  }
}
