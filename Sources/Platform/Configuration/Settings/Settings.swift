/// The settings while a `Configurable` reads them.
///
/// ```swift
/// listen = settings.read("ingress.listen", .socketAddress, default: everywhere, "Where notifications arrive.")
/// certificate = settings.read("ingress.certificate", .file(), "The certificate chain, PEM.")     // required
/// trustedCA = settings.readIfPresent("apple.trusted-ca", .file(), "Who may vouch for Apple instead.")
/// ```
public struct Settings {
  let values: SourceValues
  /// Whether nothing is to be read but all declarations are wanted.
  let isDescribing: Bool
  private(set) var declarations: [SettingDeclaration] = []
  private(set) var resolved: [ResolvedSetting] = []
  private(set) var faults: [ConfigurationFault] = []
  private(set) var warnings: [ConfigurationFault] = []

  init(reading values: SourceValues) { (self.values, isDescribing) = (values, false) }

  init(describingWithPrefix prefix: String) { (values, isDescribing) = (SourceValues(prefix: prefix), true) }

  /// A setting that must be set.
  public mutating func read<Value>(_ path: String, _ type: SettingType<Value>, _ help: String) -> Value {
    declare(path, type.name, .required, help, isSecret: type.isSecret)
    switch resolve(path, type) {
    case .value(let value): return value
    case .faulty: break
    case .absent:
      let place = "set it in \(values.fileName) or as \(values.variable(of: path))"
      fault(.preset, path, "missing; expected \(type.expectation); \(place)")
    }
    return type.standIn
  }

  /// A setting that has a default.
  public mutating func read<Value>(
    _ path: String, _ type: SettingType<Value>, default preset: Value, _ help: String
  ) -> Value {
    declare(path, type.name, .value(type.show(preset)), help, isSecret: type.isSecret)
    switch resolve(path, type) {
    case .value(let value): return value
    // For the reading to go on: there is a fault now, so that no program gets what it makes.
    case .faulty: return preset
    case .absent:
      note(path, type.show(preset), .preset)
      return preset
    }
  }

  /// A setting that may be left out; the help says what happens then.
  public mutating func readIfPresent<Value>(_ path: String, _ type: SettingType<Value>, _ help: String) -> Value? {
    declare(path, type.name, .none, help, isSecret: type.isSecret)
    return resolve(path, type).value
  }

  /// Says that a setting, well-formed as it is, does not go together with another one.
  public mutating func refuse(_ path: String, _ message: String) {
    // What is malformed has its fault already; what stands in for it says nothing.
    if isDescribing || faults.contains(where: { $0.setting == path }) { return }
    fault(origin(of: path), path, message)
  }

  /// Says of a setting that works what its user may not have meant.
  public mutating func warn(_ path: String, _ message: String) {
    if isDescribing { return }
    warnings.append(ConfigurationFault(origin: origin(of: path), setting: path, message: message))
  }

  /// Whether something was found that is wrong with a setting: who reads two that belong together has nothing to add then.
  public func isFaulty(_ path: String) -> Bool { faults.contains { $0.setting == path } }

  private func origin(of path: String) -> SettingOrigin {
    resolved.last { $0.path == path }?.origin ?? .preset
  }

  mutating func declare(
    _ path: String, _ type: String, _ preset: SettingDeclaration.Preset, _ help: String, isSecret: Bool,
    isProperties: Bool = false
  ) {
    guard isDescribing else { return }
    let declaration = SettingDeclaration(
      path: path, variable: values.variable(of: path), type: type, preset: preset, help: help, isSecret: isSecret,
      isProperties: isProperties)
    // Two parts of a program may read it.
    if !declarations.contains(declaration) { declarations.append(declaration) }
  }

  mutating func fault(_ origin: SettingOrigin, _ path: String, _ message: String) {
    faults.append(ConfigurationFault(origin: origin, setting: path, message: message))
  }

  mutating func note(_ path: String, _ shown: String, _ origin: SettingOrigin) {
    let setting = ResolvedSetting(path: path, value: shown, origin: origin)
    if !resolved.contains(setting) { resolved.append(setting) }
  }

  /// Shows the value that was just noted no more.
  mutating func hideLast(of path: String) {
    guard let last = resolved.last, last.path == path else { return }
    resolved[resolved.count - 1] = ResolvedSetting(path: path, value: Secret.mask, origin: last.origin)
  }

  enum Resolution<Value> {
    case absent, faulty
    case value(Value)

    var value: Value? { if case .value(let value) = self { value } else { nil } }
  }

  mutating func resolve<Value>(_ path: String, _ type: SettingType<Value>) -> Resolution<Value> {
    guard !isDescribing else { return .absent }
    let variable = values.variable(of: path)
    if type.isSecret { refuseBoth(variable, path) }
    guard let input = values.input(at: path, orFileIn: type.isSecret ? variable + "_FILE" : nil) else { return .absent }
    return parse(input, path, type)
  }

  /// A secret and the file of the same secret: whoever set both may believe in the wrong one.
  mutating func refuseBoth(_ variable: String, _ path: String) {
    guard values.environment[variable] != nil, values.environment[variable + "_FILE"] != nil else { return }
    fault(.variable(variable + "_FILE"), path, "expected only one of this and \(variable), found both")
  }

  mutating func parse<Value>(_ input: SettingInput, _ path: String, _ type: SettingType<Value>) -> Resolution<Value> {
    var texts: [String] = []
    defer {
      warnings += texts.map { ConfigurationFault(origin: input.origin, setting: path, message: $0) }
    }
    do {
      let value = try type.parse(input, &texts)
      note(path, type.show(value), input.origin)
      return .value(value)
    } catch {
      let origin = error.line.map { values.origin(line: $0) } ?? input.origin
      let found = type.isSecret ? "" : ", found \(error.found)"
      fault(origin, path, error.reason ?? "expected \(type.expectation)\(found)")
      return .faulty
    }
  }
}

/// What a program uses for a setting, and from where.
public struct ResolvedSetting: Sendable, Hashable {
  /// The setting.
  public let path: String
  /// The value as people read it; a secret is masked.
  public let value: String
  /// Where it comes from.
  public let origin: SettingOrigin
}
