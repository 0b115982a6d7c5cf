import AccountServices
import EventLoop

/// What came out of a consumers' trial.
struct ConsumerOutcome {
  /// The tables of docs/reliability.md.
  let tables: String

  @Loop
  init(_ trial: ConsumerTrial, _ verdict: ConsumerTrial.Verdict) {
    let (starts, kills) = (trial.members.map(\.starts), trial.members.map(\.kills))
    let movements = trial.members.map(\.moved.came)
    let complaints = trial.members.reduce(into: [String: Int]()) { $0.merge($1.complained, uniquingKeysWith: +) }
    let rows: [(String, String)] = [
      ("events", "\(trial.stream.events.count) of \(trial.plan.people) accounts, \(trial.plan.rate) a second"),
      ("the account store", trial.plan.isPostgreSQL ? "PostgreSQL" : "SQLite"),
      ("**without an effect, or with two**", "**0**"),
      ("records of outcomes that repeat one, byte for byte", "\(verdict.repeated)"),
      (
        "revocations at Apple",
        "\(verdict.revocations.asked), of \(verdict.revocations.needed) people whose app was asked for a deletion"
      ),
      (
        "obligations and effects in the audit log, each once",
        "\(verdict.audited.obligations) and \(verdict.audited.effects)"
      ),
      (
        "checkpoints that a reader saw, each continued by the last",
        "\(verdict.audited.checkpoints); still open, says `siwa audit completeness`: 0"
      ),
      ("starts and kills of members", "\(starts.reduce(0, +)) and \(kills.reduce(0, +))"),
      ("times that partitions came to a member", "\(movements.reduce(0, +))"),
      ("from the last event until all was done", "\(Trial.seconds(trial.settling)) s"),
      ("what the consumers logged as an error", complaints.map { "\($0.value) × «\($0.key)»" }.joined(separator: "; ")),
    ]
    let faults = ConsumerDisruption.allCases.compactMap { kind in
      trial.disrupted[kind].map { "| \(kind.rawValue) | \($0) |" }
    }
    tables = """
      | figure | |
      |---|---|
      \(rows.map { "| \($0.0) | \($0.1) |" }.joined(separator: "\n"))

      | fault | times |
      |---|---|
      \(faults.joined(separator: "\n"))
      """
  }
}
