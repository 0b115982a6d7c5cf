package import AccountEvents
package import TransparencyLog

/// What an auditor is told of a period: what came, what became of it and how soon, what is open, what people decided, what
/// the log has not seen, and by which checkpoint all of this can be verified.
package struct AuditReport: Sendable {
  /// Some things of many: how many there are, and the first of them.
  package struct Listing<Row: Sendable>: Sendable {
    /// The first of them.
    package private(set) var rows: [Row] = []
    /// How many there are.
    package private(set) var count = 0

    /// Takes in one more.
    mutating func add(_ row: @autoclosure () -> Row) {
      count += 1
      if rows.count < AuditReport.longest { rows.append(row()) }
    }
  }

  /// So many rows a table has at most: the log has them all.
  static let longest = 1000

  /// An obligation that is open, or one whose signature is not Apple's for all that the log knows.
  package struct ObligationRow: Sendable {
    /// The place of its entry in the log.
    package let index: UInt64
    /// The obligation.
    package let obligation: AuditEntry.Obligation
    /// Who has not said anything yet.
    package let missing: ConsumerSet
    /// How long it has been open, in milliseconds.
    package let age: Int64
    /// Whether it should have been met.
    package let isOverdue: Bool
  }

  /// What a person decided.
  package struct DecisionRow: Sendable {
    /// The place of its entry in the log.
    package let index: UInt64
    /// When.
    package let time: Timestamp
    /// What: `discarded`.
    package let decision: String
    /// What it is about: a topic, or a target of an erasure.
    package let subject: String
    /// The event; nil where the letter did not name one.
    package let event: EventID?
    /// Who; nil where it stands in the reason.
    package let person: String?
    /// Why; nil where nothing was said.
    package let reason: String?
  }

  /// How often a consumer had an outcome.
  package struct OutcomeRow: Sendable, Hashable {
    /// The consumer.
    package let consumer: String
    /// The outcome, with its reason where it is none: `no-effect: echo`.
    package let outcome: String
    /// How often.
    package let count: Int
  }

  /// The period.
  package let period: AuditPeriod
  /// How long an obligation may stay open.
  package let deadline: Duration
  /// When the report was made: what is open is as old as it was then.
  package let madeAt: Timestamp
  /// Where the log was read.
  package let place: String
  /// The checkpoint that the report follows from.
  package let checkpoint: VerifiedCheckpoint
  /// The log's first key, which everything is verified by.
  package let firstKey: VerifierKey
  /// All obligations of the period.
  package let total: Completeness.Figures
  /// Those of each type.
  package let types: [(type: String, figures: Completeness.Figures)]
  /// What is open.
  package let open: Listing<ObligationRow>
  /// How many of those should have been met.
  package let overdueCount: Int
  /// What the consumers said in the period.
  package let outcomes: [OutcomeRow]
  /// What people decided in the period.
  package let decisions: Listing<DecisionRow>
  /// What the log has not seen and may have come in the period, whenever that was noticed.
  package let gaps: Listing<AuditEntry.Gap>
  /// How many obligations were found to be signed by Apple, and how many not.
  package let signatures: [(signature: AuditEntry.Obligation.Signature, count: Int)]
  /// Obligations whose signature is not known to be Apple's.
  package let unproven: Listing<ObligationRow>

  /// Whether each obligation of the period is met, or its deadline lies ahead, and the log has seen everything.
  package var isInOrder: Bool { overdueCount == 0 && gaps.count == 0 }
}

/// Reads a log for a report.
package struct AuditReporter: Sendable {
  /// More names of outcomes are not told apart; there are a dozen.
  private static let nameLimit = 256

  private let period: AuditPeriod
  private let deadline: Duration
  /// What is open.
  package private(set) var completeness: Completeness
  private var outcomes: [String: [String: Int]] = [:]
  private var nameCount = 0
  private var decisions = AuditReport.Listing<AuditReport.DecisionRow>()
  /// What the log has not seen: what was noticed in the period, and events that may have come in it.
  package private(set) var gaps = AuditReport.Listing<AuditEntry.Gap>()
  /// The times of the events' last records so far, by partition: what is missing behind them came later. The newest times
  /// are not asked for: a clock that was once ahead would hide what is missing for as long.
  private var last: [Int32: Timestamp] = [:]
  private var signatures: [AuditEntry.Obligation.Signature: Int] = [:]
  private var unproven = AuditReport.Listing<AuditReport.ObligationRow>()

  /// Nothing yet.
  package init(of concerned: ConcernedConsumers, in period: AuditPeriod, within deadline: Duration) {
    (self.period, self.deadline) = (period, deadline)
    completeness = Completeness(of: concerned, in: period, within: deadline)
  }

  /// Takes in an entry of the log.
  package mutating func take(_ entry: AuditEntry, at index: UInt64) {
    completeness.take(entry, at: index)
    switch entry {
    case .obligation(let obligation):
      if let time = obligation.source.time { last[obligation.source.origin.partition] = time }
      guard period.contains(obligation.came) else { return }
      signatures[obligation.signature, default: 0] += 1
      if [.unknownKey, .refused].contains(obligation.signature) {
        unproven.add(.init(index: index, obligation: obligation, missing: [], age: 0, isOverdue: false))
      }
    case .effect(let effect): take(EffectFacts(effect), of: effect, at: index)
    case .decision(let decision):
      guard period.contains(decision.time) else { return }
      decisions.add(
        .init(
          index: index, time: decision.time, decision: decision.kind.rawValue,
          subject: decision.source.origin.topic, event: decision.id, person: decision.person, reason: decision.reason))
    case .gap(let gap): if period.contains(gap.time) || mayLackEvents(gap) { gaps.add(gap) }
    }
  }

  /// Whether events of the period may be among what is missing. It is noticed later than they came, perhaps behind the end
  /// of the period: they came behind the last record of their partition that the log has.
  ///
  /// A missing outcome leaves its obligation open, so that needs no such word.
  private func mayLackEvents(_ gap: AuditEntry.Gap) -> Bool {
    guard gap.topic == Topic.accountEvents.name, gap.cause != .unreadable else { return false }
    guard period.from.map({ $0 <= gap.time }) ?? true else { return false }
    guard let before = last[gap.partition], let end = period.to else { return true }
    return before < end
  }

  private mutating func take(_ facts: EffectFacts, of effect: AuditEntry.Effect, at index: UInt64) {
    guard let time = effect.source.time ?? facts.doneAt, period.contains(time) else { return }
    for target in facts.targets where target.state == "discarded" {
      decisions.add(
        .init(
          index: index, time: time, decision: target.state, subject: "target \(target.name)", event: effect.cause,
          person: nil, reason: target.note))
    }
    let isKnown = outcomes[facts.consumer]?[facts.outcome] != nil
    if !isKnown {
      nameCount += 1
      guard nameCount <= Self.nameLimit else { return outcomes["others", default: [:]]["other", default: 0] += 1 }
    }
    outcomes[facts.consumer, default: [:]][facts.outcome, default: 0] += 1
  }

  /// The report, once all entries were taken in.
  package func report(of log: AuditLog, at place: String, now: Timestamp) async throws -> AuditReport {
    let open = completeness.openObligations
    var rows = AuditReport.Listing<AuditReport.ObligationRow>()
    let first = open.prefix(AuditReport.longest)
    var left = first[...]
    try await log.entries(at: first.map(\.index)) { index, entry in
      guard case .obligation(let obligation) = entry, let item = left.popFirst() else { return }
      rows.add(
        .init(
          index: index, obligation: obligation, missing: item.missing,
          age: now.milliseconds - item.came.milliseconds, isOverdue: completeness.isOverdue(item, at: now)))
    }
    rows.count(all: open.count)
    return AuditReport(
      period: period, deadline: deadline, madeAt: now, place: place, checkpoint: log.checkpoint,
      firstKey: log.trust.key, total: completeness.total, types: completeness.figures, open: rows,
      overdueCount: open.count { completeness.isOverdue($0, at: now) },
      outcomes: outcomes.flatMap { consumer, counts in
        counts.map { AuditReport.OutcomeRow(consumer: consumer, outcome: $0.key, count: $0.value) }
      }.sorted { ($0.consumer, $0.outcome) < ($1.consumer, $1.outcome) },
      decisions: decisions, gaps: gaps,
      signatures: AuditEntry.Obligation.Signature.allCases.map { ($0, signatures[$0] ?? 0) }, unproven: unproven)
  }
}

extension AuditReport.Listing {
  /// Says how many there are, of which it has the first.
  fileprivate mutating func count(all count: Int) { self.count = count }
}
