/// A setting as it is explained to people.
public struct SettingDeclaration: Sendable, Hashable {
  /// Where it stands in the file, by keys joined with dots: `ingress.listen`, `teams.{TEAM}.audiences`. What is in
  /// braces stands for any key.
  public let path: String
  /// The environment variable: `SIWA_INGRESS_LISTEN`.
  public let variable: String
  /// What its values are: `duration, 1s to 5m`.
  public let type: String
  /// What holds where nothing is set.
  public let preset: Preset
  /// One line of help.
  public let help: String

  let isSecret: Bool
  /// Whether its last key stands for names that may contain dots, which belong to somebody else.
  let isProperties: Bool

  /// What holds where nothing is set.
  public enum Preset: Sendable, Hashable {
    /// The program does not start.
    case required
    /// Nothing; the help says what that means.
    case none
    /// This value.
    case value(String)
  }

  /// One key of the path.
  enum Component: Hashable {
    case name(String)
    case any
    /// All further keys.
    case rest
  }

  /// The keys of the path. Taken apart once: every name in the file is held against every setting.
  let components: [Component]

  init(
    path: String, variable: String, type: String, preset: Preset, help: String, isSecret: Bool, isProperties: Bool
  ) {
    (self.path, self.variable, self.type, self.preset, self.help) = (path, variable, type, preset, help)
    (self.isSecret, self.isProperties) = (isSecret, isProperties)
    let keys = path.split(separator: ".", omittingEmptySubsequences: false)
    components = keys.enumerated().map { index, key in
      guard key.hasPrefix("{") else { return .name(String(key)) }
      return isProperties && index == keys.count - 1 ? .rest : .any
    }
  }

  /// Whether the path of a value in the file or on the command line is one of this setting's.
  func matches(_ keys: [String]) -> Bool {
    for (index, component) in components.enumerated() {
      switch component {
      case .rest: return keys.count > index
      case .any: if index >= keys.count { return false }
      case .name(let name): if index >= keys.count || keys[index] != name { return false }
      }
    }
    return keys.count == components.count
  }

  /// Whether a group of settings may stand at `keys`, because this setting is somewhere inside.
  func isInside(_ keys: [String]) -> Bool {
    guard keys.count < components.count else { return false }
    return zip(keys, components).allSatisfy { key, component in component == .any || component == .name(key) }
  }

  /// What stands for the key in braces of a variable that is one of this setting's; for a setting without such a key,
  /// the empty text. Nil for another variable.
  func key(inVariable name: String) -> String? {
    guard let brace = variable.firstIndex(of: "{"), let end = variable.lastIndex(of: "}") else {
      return name == variable || isSecret && name == variable + "_FILE" ? "" : nil
    }
    let (prefix, suffix) = (variable[..<brace], variable[variable.index(after: end)...])
    for suffix in isSecret ? [String(suffix), suffix + "_FILE"] : [String(suffix)]
    where name.hasPrefix(prefix) && name.hasSuffix(suffix) && name.utf8.count > prefix.utf8.count + suffix.utf8.count {
      return String(name.dropFirst(prefix.count).dropLast(suffix.count))
    }
    return nil
  }
}
