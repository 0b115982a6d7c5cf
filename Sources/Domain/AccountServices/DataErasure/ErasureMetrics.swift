import EventLoop
import Telemetry

/// What operators watch of erasures. `docs/` names these; renaming one breaks dashboards.
@Loop
final class ErasureMetrics {
  /// Targets that were erased or named as retained, each once for an event.
  let erased: [String: Counter]
  /// Erasures that did not wait for the token revoker any longer.
  let unrevoked: Counter
  private let failures: [String: [ErasureFailure.Code: Counter]]

  nonisolated init(_ registry: MetricsRegistry, targets: [String]) {
    func counters(_ body: (String) -> Counter) -> [String: Counter] {
      Dictionary(targets.map { ($0, body($0)) }, uniquingKeysWith: { first, _ in first })
    }
    erased = counters { target in
      registry.counter(
        "siwa_erasure_targets_done_total", "Targets that were erased or retained, once for each event.",
        labels: ["target": target])
    }
    unrevoked = registry.counter(
      "siwa_erasures_unrevoked_total",
      "Attempts at erasures that went on before the token revoker had ended the account's tokens. Alarm on any increase."
    )
    failures = Dictionary(
      targets.map { target in
        let counters = ErasureFailure.Code.allCases.filter { $0 != .paused }.map { code in
          (
            code,
            registry.counter(
              "siwa_erasure_target_failures_total", "Attempts at a target that have failed, by cause.",
              labels: ["target": target, "cause": code.rawValue])
          )
        }
        return (target, Dictionary(counters, uniquingKeysWith: { first, _ in first }))
      }, uniquingKeysWith: { first, _ in first })
  }

  func count(_ code: ErasureFailure.Code, of target: String) { failures[target]?[code]?.increment() }
}
