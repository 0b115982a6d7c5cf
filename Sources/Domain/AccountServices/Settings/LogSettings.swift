package import Configuration
package import Telemetry

/// What is logged and how.
package struct LogSettings: Configurable, Equatable {
  /// Lines below it are not written.
  package var level: LogLevel
  /// How a line looks.
  package var format: LogFormat

  /// Both said.
  package init(level: LogLevel, format: LogFormat) { (self.level, self.format) = (level, format) }

  /// Reads `log`.
  package init(reading settings: inout Settings) {
    level = settings.read(
      "log.level", .choice(LogLevel.self), default: .info, "Lines that matter less are not written.")
    format = settings.read(
      "log.format", .choice(LogFormat.self), default: .json, "One JSON object a line, or text for people.")
  }
}
