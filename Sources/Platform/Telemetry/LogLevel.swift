/// How much a log line matters. A logger writes the lines of its own level and above.
public enum LogLevel: String, Sendable, CaseIterable, Comparable {
  /// For whoever looks for a mistake; off in production.
  case debug
  /// What happened, one line an event.
  case info
  /// Rare and worth knowing: started, keys rotated, draining.
  case notice
  /// Something is wrong, and the program copes.
  case warning
  /// Something is lost or undone until somebody acts.
  case error

  private var rank: Int {
    switch self {
    case .debug: 0
    case .info: 1
    case .notice: 2
    case .warning: 3
    case .error: 4
    }
  }

  /// Whether `left` matters less.
  public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}
