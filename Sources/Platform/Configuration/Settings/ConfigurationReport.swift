extension ConfigurationSchema {
  /// What each program would use, and all that is wrong: `config check`.
  ///
  /// `names` are the programs to look at; where there are none, all.
  public func check(_ sources: ConfigurationSources, programs names: [String] = []) -> ConfigurationReport {
    let values = SourceValues(sources, prefix: prefix, defaultFile: defaultFile)
    let structural = merge(structuralFaults(of: values), [], of: values)
    let reports = programs.filter { names.isEmpty || names.contains($0.name) }.map { program in
      var settings = Settings(reading: values)
      program.read(&settings)
      return ConfigurationReport.Program(
        name: program.name, settings: settings.resolved, faults: merge([], settings.faults, of: values),
        warnings: settings.warnings)
    }
    return ConfigurationReport(faults: structural, programs: reports)
  }
}

/// What the programs would use of a configuration.
public struct ConfigurationReport: Sendable, CustomStringConvertible {
  /// One program's part.
  public struct Program: Sendable {
    /// The program.
    public let name: String
    /// What it would use, in the order of its declarations.
    public let settings: [ResolvedSetting]
    /// Why it would not start.
    public let faults: [ConfigurationFault]
    /// What is worth a look.
    public let warnings: [ConfigurationFault]
  }

  /// What would keep every program from starting.
  public let faults: [ConfigurationFault]
  /// The programs.
  public let programs: [Program]

  /// Whether every program would start.
  public var isUsable: Bool { faults.isEmpty && programs.allSatisfy(\.faults.isEmpty) }

  /// The report for people: a table for each program, warnings, and the faults last, where they are seen.
  public var description: String {
    var text = ""
    for program in programs {
      text += "\(program.name)\n"
      let rows = program.settings.map { ($0.path, $0.value.shortened, $0.origin.description) }
      let width = (rows.map(\.0.count).max() ?? 0, rows.map(\.1.count).max() ?? 0)
      for (path, value, origin) in rows {
        text += "  \(path.padded(to: width.0))  \(value.padded(to: width.1))  \(origin)\n"
      }
      for warning in program.warnings { text += "  warning: \(warning)\n" }
      text += "\n"
    }
    for fault in faults { text += "fault: \(fault)\n" }
    for program in programs {
      for fault in program.faults { text += "fault, \(program.name): \(fault)\n" }
    }
    let count = faults.count + programs.reduce(0) { $0 + $1.faults.count }
    return text + (count == 0 ? "no faults\n" : count == 1 ? "1 fault\n" : "\(count) faults\n")
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }

  /// As much of a value as stands in a table; one line, whatever it holds.
  fileprivate var shortened: String {
    let line = unicodeScalars.prefix(60).map { scalar in
      scalar.value < 0x20 || scalar.value == 0x7f ? scalar.escaped(asASCII: true) : String(scalar)
    }
    return unicodeScalars.count > 60 ? line.joined() + "…" : line.joined()
  }
}
