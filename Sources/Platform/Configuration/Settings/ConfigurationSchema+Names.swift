extension ConfigurationSchema {
  /// What is wrong with the sources whichever program reads them: the file's form, and names that nobody knows.
  func structuralFaults(of values: SourceValues) -> [ConfigurationFault] {
    var faults = values.faults
    check(values.root, at: [], of: values, into: &faults)
    for (name, _) in values.environment where !declarations.contains(where: { $0.key(inVariable: name) != nil }) {
      faults.append(unknown(.variable(name), name, among: declarations.map(\.variable)))
    }
    for (path, _) in values.overrides {
      let keys = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
      if declarations.contains(where: { $0.matches(keys) }) { continue }
      if declarations.contains(where: { $0.isInside(keys) }) {
        let message = "expected one setting, found the name of a group of settings"
        faults.append(ConfigurationFault(origin: .option("--set \(path)"), setting: path, message: message))
      } else {
        faults.append(unknown(.option("--set \(path.asName)"), path, among: paths(like: keys)))
      }
    }
    return faults
  }

  /// Goes through the groups of the file down to the settings. The file's depth is bounded.
  private func check(
    _ node: YAMLNode, at keys: [String], of values: SourceValues, into faults: inout [ConfigurationFault]
  ) {
    guard let entries = node.entries else {
      let message = "expected a group of settings, found \(SettingInput(node: node, origin: .preset).misfit().found)"
      faults.append(
        ConfigurationFault(
          origin: values.origin(line: node.line), setting: keys.joined(separator: "."), message: message))
      return
    }
    for entry in entries {
      let path = keys + [entry.key]
      if declarations.contains(where: { $0.matches(path) }) { continue }
      if declarations.contains(where: { $0.isInside(path) }) {
        check(entry.value, at: path, of: values, into: &faults)
        continue
      }
      let name = path.joined(separator: ".")
      faults.append(unknown(values.origin(line: entry.line), name, among: paths(like: path)))
    }
  }

  private func unknown(_ origin: SettingOrigin, _ name: String, among names: [String]) -> ConfigurationFault {
    // Somebody wrote `ingress.listen: …` at the top, as the command line has it.
    if case .file = origin, names.contains(name) {
      let keys = name.split(separator: ".")
      let message = "expected \(keys[keys.count - 1]) inside of \(keys.dropLast().joined(separator: "."))"
      return ConfigurationFault(origin: origin, setting: name, message: message)
    }
    // A group's own name counts too: `ingres` means `ingress`.
    let groups = names.flatMap { name in
      name.indices.filter { name[$0] == "." }.map { String(name[..<$0]) }
    }
    let hint = Suggestion.nearest(to: name, among: names + groups).map { "; did you mean \($0)?" } ?? ""
    return ConfigurationFault(origin: origin, setting: name.asName, message: "unknown setting\(hint)")
  }

  /// The paths of all settings, with the given keys in the places where any may stand.
  private func paths(like keys: [String]) -> [String] {
    declarations.map { declaration in
      let components = declaration.path.split(separator: ".").enumerated().map { index, name in
        name.hasPrefix("{") && index < keys.count ? keys[index] : String(name)
      }
      return components.joined(separator: ".")
    }
  }
}

extension String {
  /// A name as it is, unless it could confuse who reads it.
  fileprivate var asName: String {
    utf8.count <= 100 && utf8.allSatisfy { (0x21...0x7e).contains($0) } ? self : quoted
  }
}
