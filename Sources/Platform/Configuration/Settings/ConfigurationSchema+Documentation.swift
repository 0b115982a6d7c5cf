extension ConfigurationSchema {
  /// Every setting as a row of a Markdown table, for `docs/settings.md`.
  public var markdownTable: String {
    var lines = ["| setting | variable | value | default | meaning |", "|---|---|---|---|---|"]
    for setting in declarations {
      let preset =
        switch setting.preset {
        case .required: "required"
        case .none, .value(""): ""
        case .value(let text): "`\(text)`"
        }
      let cells = ["`\(setting.path)`", "`\(setting.variable)`", setting.type, preset, setting.help]
      lines.append(
        "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// The settings of one program, for its `--help`.
  public func help(of program: String) -> String {
    guard let program = programs.first(where: { $0.name == program }) else {
      preconditionFailure("\(program) is not in the schema")
    }
    var text = """
      Settings, each from --set NAME=VALUE, or else its variable, or else the file (--config FILE, or \(prefix)CONFIG,
      or \(defaultFile)):

      """
    for setting in program.declarations {
      let preset =
        switch setting.preset {
        case .required: "required"
        case .none, .value(""): "not set by default"
        case .value(let text): "default \(text)"
        }
      text += "  \(setting.path)\n      \(setting.help)\n      \(setting.variable); \(setting.type); \(preset)\n"
    }
    return text
  }
}
