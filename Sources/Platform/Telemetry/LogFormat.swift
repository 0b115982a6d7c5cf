/// How a log line looks.
public enum LogFormat: String, Sendable, CaseIterable {
  /// One JSON object a line, for machines.
  case json
  /// `time LEVEL message key=value …`, for people.
  case text
}
