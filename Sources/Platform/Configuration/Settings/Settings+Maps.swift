extension Settings {
  /// A group of settings for each of any number of keys: `teams.{TEAM}.…`. At least one key is required.
  ///
  /// `body` reads the settings of one key, given their common path. `name` is what stands for the key in the
  /// documentation.
  public mutating func readEach<Key: Hashable, Value>(
    _ path: String, _ type: SettingType<Key>, named name: String,
    _ body: (inout Settings, _ path: String, _ key: Key) -> Value
  ) -> [(key: Key, value: Value)] {
    readEach(path, type, named: name, isRequired: true, body)
  }

  /// The same where there may be no key.
  public mutating func readEachIfPresent<Key: Hashable, Value>(
    _ path: String, _ type: SettingType<Key>, named name: String,
    _ body: (inout Settings, _ path: String, _ key: Key) -> Value
  ) -> [(key: Key, value: Value)] {
    readEach(path, type, named: name, isRequired: false, body)
  }

  private mutating func readEach<Key: Hashable, Value>(
    _ path: String, _ type: SettingType<Key>, named name: String, isRequired: Bool,
    _ body: (inout Settings, _ path: String, _ key: Key) -> Value
  ) -> [(key: Key, value: Value)] {
    if isDescribing {
      return [(type.standIn, body(&self, "\(path).{\(name)}", type.standIn))]
    }
    var result: [(Key, Value)] = []
    let keys = keys(at: path, type, declaredBy: { body(&$0, "\(path).{\(name)}", type.standIn) })
    for (text, origin) in keys {
      var ignored: [String] = []
      do {
        let key = try type.parse(SettingInput(text: text, origin: origin), &ignored)
        result.append((key, body(&self, "\(path).\(text)", key)))
      } catch {
        fault(origin, path, "expected \(type.expectation) as a key, found \(error.found)")
      }
    }
    // Text in the place of the whole group is told by the schema.
    if isRequired, keys.isEmpty, values.node(at: path)?.entries != nil || values.node(at: path) == nil {
      fault(.preset, path, "missing; expected settings for \(type.expectation)")
    }
    return result
  }

  /// The keys that the sources have at a path, in the order of the file, then in their own.
  ///
  /// A variable's name is in capitals, whatever the key is. It belongs to the key of the file or of the command line that
  /// it is the name for; where there is none, to a key in capitals, or else in small letters with hyphens, as the type
  /// wants it.
  private func keys<Key>(
    at path: String, _ type: SettingType<Key>, declaredBy body: (inout Settings) -> some Any
  ) -> [(text: String, origin: SettingOrigin)] {
    var described = Settings(describingWithPrefix: values.prefix)
    _ = body(&described)
    var found: [(text: String, origin: SettingOrigin)] = (values.node(at: path)?.entries ?? []).map { entry in
      (entry.key, values.origin(line: entry.line))
    }
    var more: [String: SettingOrigin] = [:]
    for override in values.overrides where override.path.hasPrefix(path + ".") {
      let key = override.path.dropFirst(path.count + 1).prefix { $0 != "." }
      more[String(key)] = .option("--set \(override.path)")
    }
    let known = Set((found.map(\.text) + more.keys).map(values.inVariable))
    for variable in values.environment.keys {
      for declaration in described.declarations {
        guard let name = declaration.key(inVariable: variable), !known.contains(name) else { continue }
        let small = String(name.lowercased().map { $0 == "_" ? "-" : $0 })
        more[type.takes(name) || !type.takes(small) ? name : small] = .variable(variable)
      }
    }
    for (text, origin) in more.sorted(by: { $0.key < $1.key }) where !found.contains(where: { $0.text == text }) {
      found.append((text, origin))
    }
    return found
  }

  /// Settings whose names belong to somebody else: they pass through under any name, as text.
  ///
  /// In a variable the name is in capitals, with `_` for its dots. Properties for which `isSecret` holds are secrets:
  /// their variable holds the secret itself, and everywhere else stands the path of a file that holds it. `fault` says
  /// what their owner has against a property, without showing a secret; nil if nothing. The
  /// `required` ones must be set.
  public mutating func readProperties(
    _ path: String, required: [String] = [], isSecret: (_ name: String) -> Bool,
    fault: (_ name: String, _ value: String) -> String?, _ help: String
  ) -> Properties {
    declare("\(path).{property}", "text", .none, help, isSecret: false, isProperties: true)
    if isDescribing { return Properties() }
    var properties = Properties()
    let inputs = inputs(at: path, isSecret: isSecret)
    for (name, input) in inputs {
      let full = "\(path).\(name)"
      if isSecret(name) { refuseBoth(variable(of: name, at: path), full) }
      let value = isSecret(name) ? parse(input, full, .secret).value?.revealed : parse(input, full, property).value
      guard let value else { continue }
      if let reason = fault(name, value) {
        self.fault(input.origin, full, reason)
        // What its owner does not know may be a secret under a name that is misspelt.
        hideLast(of: full)
      }
      properties.set(name, value, isSecret: isSecret(name))
    }
    for name in required where !inputs.contains(where: { $0.name == name }) {
      let place = "set it in \(values.fileName) or as \(variable(of: name, at: path))"
      self.fault(.preset, "\(path).\(name)", "missing; \(place)")
    }
    return properties
  }

  /// `bootstrap.servers` under `kafka` → `SIWA_KAFKA_BOOTSTRAP_SERVERS`.
  private func variable(of name: String, at path: String) -> String {
    values.variable(of: path) + "_" + name.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
  }

  /// Each property with its value from the strongest source, in the order of the file, then of their names.
  private func inputs(at path: String, isSecret: (String) -> Bool) -> [(name: String, input: SettingInput)] {
    var names = (values.node(at: path)?.entries ?? []).map(\.key)
    var inputs: [String: SettingInput] = [:]
    for entry in values.node(at: path)?.entries ?? [] { inputs[entry.key] = values.input(of: entry) }

    let prefix = values.variable(of: path) + "_"
    for (variable, text) in values.environment.sorted(by: { $0.key < $1.key }) where variable.hasPrefix(prefix) {
      let name = String(variable.dropFirst(prefix.count).lowercased().map { $0 == "_" ? "." : $0 })
      let stem = name.hasSuffix(".file") ? String(name.dropLast(".file".count)) : name
      if stem != name, isSecret(stem) {
        inputs[stem] = SettingInput(text: text, origin: .variable(variable))
      } else {
        inputs[name] = SettingInput(text: text, origin: .variable(variable), isSecretItself: true)
      }
    }
    for override in values.overrides where override.path.hasPrefix(path + ".") {
      inputs[String(override.path.dropFirst(path.count + 1))] = values.override(override.path)
    }
    names += inputs.keys.filter { !names.contains($0) }.sorted()
    return names.compactMap { name in inputs[name].map { (name, $0) } }
  }
}

/// Any text that C can take, PEM with its newlines too.
private let property = SettingType(
  "text", expected: "text", standIn: "", show: { $0 },
  parse: { text in
    text.utf8.count <= 65_536 && !text.utf8.contains(0) ? text : nil
  })
