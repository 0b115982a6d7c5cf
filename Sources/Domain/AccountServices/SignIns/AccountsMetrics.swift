import EventLoop
import Telemetry

/// What operators watch of sign-ins. docs/operations.md names it; renaming it breaks dashboards.
@Loop
final class AccountsMetrics {
  /// What became of a sign-in: the label of a metric.
  enum Outcome: String, CaseIterable {
    /// The person had not signed in before, or not since an erasure.
    case new
    /// They had.
    case known
    /// The identity token was not believed.
    case tokenRefused = "token-refused"
    /// Apple did not take the code.
    case codeRefused = "code-refused"
    /// The person has to begin again.
    case beginAgain = "begin-again"
    /// It may succeed later.
    case unavailable
  }

  private let answers: [Int: Counter]
  private let others: Counter
  private let outcomes: [Outcome: Counter]
  /// Requests beyond a caller's limit.
  let limited: Counter
  /// Exchanges of which nobody learned what came, and that no token covers.
  let unresolved: Counter
  /// Sign-ins of which two accounts would have become one.
  let conflicts: Counter
  /// Tokens that wait for the store.
  let waiting: Gauge

  nonisolated init(_ registry: MetricsRegistry) {
    func answer(_ status: String) -> Counter {
      registry.counter("siwa_accounts_answers_total", "Answers to applications, by status.", labels: ["status": status])
    }
    answers = Dictionary(
      [200, 202, 400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429, 503].map { ($0, answer("\($0)")) },
      uniquingKeysWith: { first, _ in first })
    others = answer("other")
    outcomes = Dictionary(
      uniqueKeysWithValues: Outcome.allCases.map { outcome in
        (
          outcome,
          registry.counter(
            "siwa_accounts_sign_ins_total", "Sign-ins, by what became of them.", labels: ["outcome": outcome.rawValue])
        )
      })
    limited = registry.counter("siwa_accounts_limited_total", "Requests beyond the limit of their caller: 429.")
    unresolved = registry.counter(
      "siwa_accounts_exchanges_unresolved_total",
      "Codes that were sent to Apple without anybody learning what came of it, and without a later sign-in whose token "
        + "ends that authorization, too. Alarm on any increase.")
    conflicts = registry.counter(
      "siwa_accounts_conflicts_total",
      "Sign-ins with a claim of another team's account that is, or has become, somebody else's. Alarm on any increase.")
    waiting = registry.gauge(
      "siwa_accounts_tokens_waiting", "Tokens that Apple has granted and that wait for the store, or to be revoked.")
  }

  func count(_ status: Int) { (answers[status] ?? others).increment() }

  func count(_ outcome: Outcome) { outcomes[outcome]?.increment() }
}
