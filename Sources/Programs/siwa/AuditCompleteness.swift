import AccountEvents
import AccountServices
import Configuration
import EventLoop
import JSON
import TransparencyLog

/// `siwa audit completeness`: whether everything was done that had to be done.
struct AuditCompleteness: Command {
  static let name = "audit completeness"
  static let summary = "Says which obligations are open, and whether one of them is overdue: the legal question."
  static let details = """
    An obligation is met when every consumer that it concerns has said what it did about the event, be it that nothing was
    to be done (no-effect, with a reason), or when a person has discarded the consumer's dead letter:

    \(ConcernedConsumers.table.map { "  \($0.types.joined(separator: ", ")):\n    \($0.consumers.names.joined(separator: ", "))\n" }.joined())
    A line for each obligation that is open: whether it is overdue, when the event came, its age, type, id, who is waited
    for, and the entry in the log. Then what the log itself has not seen, which may be more than is open: events count in
    each period in which they may have come, whenever it was noticed that they are missing.

    What waits in quarantine is none yet: see 'siwa quarantine list'. The log is read once; some hundred bytes of memory
    are needed for each obligation that is open at a time, and for each effect that was logged before its obligation, so
    ten million that are open want about a gigabyte.

    Exit codes: 0 all is in order, 1 an obligation of the period is overdue, or the log has not seen everything, 2 the
    command line or the configuration makes no sense, 3 the log cannot be read at the moment.

    """
  static let examples = [
    CommandExample("siwa audit completeness", "All that ever came, with a deadline of 30 days."),
    CommandExample(
      "siwa audit completeness --from 2026-01-01 --to 2026-04-01 --deadline 14d --json", "A quarter, for a program."),
    CommandExample("siwa audit completeness --without token-revoker", "Where no tokens are held."),
  ]

  private let judgement: AuditJudgement
  private let isJSON: Bool
  private let access: AuditAccess

  init(reading arguments: inout CommandArguments) {
    judgement = AuditJudgement(reading: &arguments)
    isJSON = arguments.flag("--json", "Says it as lines of JSON: one for each open obligation and gap, and the sum.")
    access = AuditAccess(reading: &arguments)
  }

  func run() async -> ExitCode {
    // What is overdue may stand in what is left out, if that is older than the deadline.
    await access.open(within: judgement.deadline) { log, known in
      let reporter = try await judgement.read(log, without: known.absent)
      let now = Timestamp.now
      let (completeness, open) = (reporter.completeness, reporter.completeness.openObligations)
      var left = open[...]
      try await log.entries(at: open.map(\.index)) { _, entry in
        guard case .obligation(let obligation) = entry, let item = left.popFirst() else { return }
        say(obligation, item, isOverdue: completeness.isOverdue(item, at: now), at: now)
      }
      for gap in reporter.gaps.rows { say(gap) }
      let overdue = open.count { completeness.isOverdue($0, at: now) }
      say(completeness.total, overdue: overdue, gaps: reporter.gaps.count, of: log)
      return overdue == 0 && reporter.gaps.count == 0 ? .success : .failure
    }
  }

  private func say(
    _ obligation: AuditEntry.Obligation, _ item: Completeness.Open, isOverdue: Bool, at now: Timestamp
  ) {
    let age = now.milliseconds - item.came.milliseconds
    guard isJSON else {
      let words = [
        isOverdue ? "overdue" : "open   ", item.came.description, TimeSpan.words(age), obligation.type,
        obligation.id.text, "waits for \(item.missing.names.joined(separator: ", "))", "entry \(item.index)",
      ]
      Terminal.say(words.joined(separator: "  "))
      return
    }
    let json: JSONValue = [
      "open": .string(obligation.id.text), "overdue": .boolean(isOverdue), "type": .string(obligation.type),
      "team": .string(obligation.team.text), "audience": .string(obligation.audience.text),
      "account": .string("\(obligation.account)"), "came": .string("\(item.came)"), "age_ms": .integer(age),
      "missing": .array(item.missing.names.map { .string($0) }), "entry": .integer(Int64(clamping: item.index)),
    ]
    Terminal.say(String(decoding: json.bytes, as: UTF8.self))
  }

  private func say(_ gap: AuditEntry.Gap) {
    guard isJSON else {
      let place = "\(gap.topic)/\(gap.partition) \(gap.from)–\(gap.to)"
      Terminal.say("gap      \(gap.time)  \(place)  \(gap.cause.rawValue)")
      return
    }
    let json: JSONValue = [
      "gap": .string(gap.topic), "partition": .integer(Int64(gap.partition)), "from": .integer(gap.from),
      "to": .integer(gap.to), "why": .string(gap.cause.rawValue), "time": .string("\(gap.time)"),
    ]
    Terminal.say(String(decoding: json.bytes, as: UTF8.self))
  }

  private func say(_ total: Completeness.Figures, overdue: Int, gaps: Int, of log: AuditLog) {
    let open = total.received - total.met
    guard isJSON else {
      let times = total.times.quantile(perMille: 500).map { half in
        "; half within \(TimeSpan.words(half)), the longest took \(TimeSpan.words(total.times.maximum))"
      }
      Terminal.say(
        """
        Obligations  \(total.received), by the log of \(log.size) entries
        Met          \(total.met), \(total.late) of them late\(times ?? "")
        Open         \(open), \(overdue) of them overdue
        Gaps         \(gaps)
        """)
      return
    }
    let json: JSONValue = [
      "obligations": .integer(Int64(total.received)), "met": .integer(Int64(total.met)),
      "late": .integer(Int64(total.late)), "open": .integer(Int64(open)), "overdue": .integer(Int64(overdue)),
      "gaps": .integer(Int64(gaps)), "size": .integer(Int64(clamping: log.size)),
      "root": .string("\(log.checkpoint.checkpoint.root)"),
      "uncosigned_size": log.checkpoint.uncosignedSize.map { JSONValue.integer(Int64(clamping: $0)) } ?? .null,
    ]
    Terminal.say(String(decoding: json.bytes, as: UTF8.self))
  }
}
