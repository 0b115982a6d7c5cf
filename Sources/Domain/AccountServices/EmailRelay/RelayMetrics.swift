import EventLoop
import Telemetry

/// What operators watch of the questions that mailers ask. `docs/` names it; renaming it breaks dashboards.
@Loop
final class RelayMetrics {
  private var answers: [Int: Counter] = [:]
  private let others: Counter

  nonisolated init(_ registry: MetricsRegistry) {
    func counter(_ status: String) -> Counter {
      registry.counter(
        "siwa_email_relay_answers_total", "Answers to mailers, by status.", labels: ["status": status])
    }
    answers = Dictionary(
      [200, 304, 400, 401, 404, 405, 410, 413, 503].map { ($0, counter("\($0)")) },
      uniquingKeysWith: { first, _ in first })
    others = counter("other")
  }

  func count(_ status: Int) { (answers[status] ?? others).increment() }
}
