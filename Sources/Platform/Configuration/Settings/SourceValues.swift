import EventLoop
import Glibc

/// The values that the sources hold, before anything reads them.
struct SourceValues {
  /// `SIWA_`: what the names of our variables begin with.
  let prefix: String
  let fileName: String
  private(set) var root = YAMLNode(line: 1, content: .mapping([]))
  private(set) var environment: [String: String] = [:]
  private(set) var overrides: [(path: String, value: String)] = []
  private(set) var faults: [ConfigurationFault] = []
  /// Whether the file's values could be read at all.
  private(set) var isFileUsable = true
  private let directory: String

  /// No values at all.
  init(prefix: String) { (self.prefix, fileName, directory) = (prefix, "", "") }

  init(_ sources: ConfigurationSources, prefix: String, defaultFile: String) {
    let variable = prefix + "CONFIG"
    let named = sources.file ?? sources.environment[variable]
    let path = named ?? defaultFile
    self.prefix = prefix
    fileName = path
    directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
    do {
      let document = YAMLDocument(try ReadableFile(path).bytes(upTo: YAMLDocument.maximumSize))
      root = document.root
      isFileUsable = document.isReadable
      faults = document.faults.map { fault in
        ConfigurationFault(origin: .file(name: path, line: fault.line), setting: nil, message: fault.message)
      }
    } catch {
      // Only the default file may be missing.
      if named != nil || error.code != ENOENT {
        let origin: SettingOrigin =
          sources.file != nil ? .option("--config") : named != nil ? .variable(variable) : .preset
        isFileUsable = false
        faults = [ConfigurationFault(origin: origin, setting: nil, message: "\(path) cannot be read: \(error)")]
      }
    }
    environment = sources.environment.filter { name, value in
      name.hasPrefix(prefix) && name != variable && !Self.isServiceLink(name, value)
    }
    for override in sources.overrides {
      let parts = override.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts.count == 2 {
        overrides.append((String(parts[0]), String(parts[1])))
      } else {
        let message = "expected NAME=VALUE, as in log.level=debug"
        faults.append(ConfigurationFault(origin: .option("--set"), setting: nil, message: message))
      }
    }
  }

  /// `ingress.private-key` → `SIWA_INGRESS_PRIVATE_KEY`; what is in braces stays as it is.
  func variable(of path: String) -> String {
    let keys = path.split(separator: ".").map { key in key.hasPrefix("{") ? String(key) : inVariable(String(key)) }
    return prefix + keys.joined(separator: "_")
  }

  /// How a key stands in the name of a variable: `private-key` → `PRIVATE_KEY`.
  func inVariable(_ key: String) -> String { String(key.uppercased().map { $0 == "-" ? "_" : $0 }) }

  /// The value at a path, from the strongest source that has one.
  func input(at path: String, orFileIn fileVariable: String?) -> SettingInput? {
    if let override = override(path) { return override }
    let variable = variable(of: path)
    if let text = environment[variable] {
      return SettingInput(text: text, origin: .variable(variable), isSecretItself: true)
    }
    if let fileVariable, let text = environment[fileVariable] {
      return SettingInput(text: text, origin: .variable(fileVariable))
    }
    return node(at: path).map { SettingInput(node: $0, origin: origin(line: $0.line), directory: directory) }
  }

  func override(_ path: String) -> SettingInput? {
    overrides.last { $0.path == path }.map { SettingInput(text: $0.value, origin: .option("--set \(path)")) }
  }

  func origin(line: Int) -> SettingOrigin { .file(name: fileName, line: line) }

  func input(of entry: YAMLEntry) -> SettingInput {
    SettingInput(node: entry.value, origin: origin(line: entry.line), directory: directory)
  }

  /// What the file has at a path.
  func node(at path: String) -> YAMLNode? {
    path.split(separator: ".").reduce(root as YAMLNode?) { node, key in node?[String(key)] }
  }

  /// Whether Kubernetes made the variable for a Service whose name begins like ours (`siwa-ingress`): such variables
  /// appear in every pod, and nobody meant them as settings.
  static func isServiceLink(_ name: String, _ value: String) -> Bool {
    if name.hasSuffix("_SERVICE_HOST") || name.contains("_SERVICE_PORT") { return true }
    if name.hasSuffix("_PORT"), value.contains("://") { return true }
    let parts = name.split(separator: "_")
    return zip(parts, zip(parts.dropFirst(), parts.dropFirst(2))).contains { word, rest in
      word == "PORT" && UInt16(rest.0) != nil && ["TCP", "UDP", "SCTP"].contains(rest.1)
    }
  }
}
