package import EventLoop

/// Whether a service can do its work now, and if not, which part keeps it from that.
@Loop
package final class Readiness {
  /// A part that must be ready.
  package enum Part: String, CaseIterable, Sendable {
    /// Apple's signing keys are known.
    case keys
    /// The log takes records.
    case kafka
    /// The service takes requests: it has started, and does not end.
    case service
  }

  private var causes: [Part: String]

  /// Nothing is ready yet.
  package init() { causes = Dictionary(uniqueKeysWithValues: Part.allCases.map { ($0, "not checked yet") }) }

  /// Notes that a part is ready (`nil`) or why it is not. Returns whether that is news.
  @discardableResult
  package func note(_ part: Part, _ cause: String?) -> Bool {
    defer { causes[part] = cause }
    return causes[part] != cause
  }

  /// Whether the part is ready.
  package func isReady(_ part: Part) -> Bool { causes[part] == nil }

  /// Whether all parts are ready.
  package var isReady: Bool { causes.isEmpty }

  /// A line for each part, as `/readyz` shows it.
  package var report: String {
    Part.allCases.map { part in "\(part.rawValue): \(causes[part].map { "not ready: \($0)" } ?? "ready")\n" }.joined()
  }
}
