package import AccountEvents
package import JSON

/// The way of one event, as the log has it: when it happened, was signed and came, what each consumer did about it, what
/// people decided, and who has not said anything yet.
package struct EventExplanation: Sendable {
  /// Something that happened on the way.
  package struct Step: Sendable, Hashable {
    /// When.
    package let time: Timestamp
    /// What, in a few words: `signed by Apple`, `data-eraser`.
    package let what: String
    /// The rest of what is to be said of it.
    package let words: String
    /// Where the record stands that says so; nil of what another step's record says.
    package let record: RecordOrigin?
    /// The place of the log's entry about it; nil likewise.
    package let entry: UInt64?
  }

  /// An obligation, with who has not said anything about it.
  package struct Duty: Sendable, Hashable {
    /// The obligation.
    package let obligation: AuditEntry.Obligation
    /// Who it waits for.
    package let missing: ConsumerSet
  }

  /// All steps in the order of their times.
  package let steps: [Step]
  /// The obligations: nearly always one.
  package let duties: [Duty]
  /// When the last of the consumers had done what it does; nil where one has not.
  package let metAt: Timestamp?

  /// What these entries say, all of which are about one event.
  package init(_ entries: [(index: UInt64, entry: AuditEntry)], of concerned: ConcernedConsumers) {
    steps = entries.flatMap { Self.steps(of: $0.entry, at: $0.index) }.sorted {
      ($0.time, $0.entry ?? 0) < ($1.time, $1.entry ?? 0)
    }
    var completeness: [Completeness] = []
    duties = entries.compactMap { index, entry in
      guard case .obligation(let obligation) = entry else { return nil }
      // What is told of one is judged as it is for all.
      var judge = Completeness(
        of: concerned, in: AuditPeriod(from: nil, to: nil), within: .seconds(100 * 366 * 86_400))
      for (index, entry) in entries { judge.take(entry, at: index) }
      completeness.append(judge)
      let missing = judge.openObligations.first { $0.index == index }?.missing ?? []
      return Duty(obligation: obligation, missing: missing)
    }
    guard let longest = completeness.first?.total, longest.met == longest.received, longest.received == 1,
      let came = duties.first?.obligation.came
    else {
      metAt = nil
      return
    }
    metAt = came + .milliseconds(longest.times.maximum)
  }

  private static func steps(of entry: AuditEntry, at index: UInt64) -> [Step] {
    switch entry {
    case .obligation(let obligation):
      let app = "\(obligation.team), \(obligation.audience)"
      let happened = Step(
        time: obligation.occurredAt, what: "happened",
        words: "\(obligation.type), account \(obligation.account) (\(app))",
        record: nil, entry: nil)
      let signed = Step(
        time: obligation.issuedAt, what: obligation.signature == .none ? "requested" : "signed",
        words: words(of: obligation), record: nil, entry: nil)
      let came = Step(
        time: obligation.came, what: "came", words: "", record: obligation.source.origin, entry: index)
      return [happened, signed, came]
    case .effect(let effect):
      let facts = EffectFacts(effect)
      guard let time = facts.doneAt ?? effect.source.time else { return [] }
      let words = ([facts.outcome] + facts.targets.map(\.words)).joined(separator: "; ")
      return [Step(time: time, what: facts.consumer, words: words, record: effect.source.origin, entry: index)]
    case .decision(let decision):
      let reason = decision.reason.map { ": \($0)" } ?? ""
      return [
        Step(
          time: decision.time, what: "decided", words: "\(decision.kind.rawValue) by \(decision.person)\(reason)",
          record: decision.source.origin, entry: index)
      ]
    case .gap: return []
    }
  }

  private static func words(of obligation: AuditEntry.Obligation) -> String {
    let key = obligation.keyID.map { "key \($0)" } ?? "no key"
    switch obligation.signature {
    case .verified: return "by Apple, \(key)"
    case .none: return "by an operator or an application, without a signature"
    case .unknownKey: return "\(key), which was not known when it was logged"
    case .refused: return "\(key), but the signature does not hold"
    }
  }

  /// The same for programs.
  package var json: JSONValue {
    [
      "steps": .array(
        steps.map { step in
          [
            "time": .string("\(step.time)"), "what": .string(step.what), "words": .string(step.words),
            "record": step.record.map { .string("\($0)") } ?? .null,
            "entry": step.entry.map { .integer(Int64(clamping: $0)) } ?? .null,
          ]
        }),
      "obligations": .array(
        duties.map { duty in
          [
            "team": .string(duty.obligation.team.text), "audience": .string(duty.obligation.audience.text),
            "type": .string(duty.obligation.type), "missing": .array(duty.missing.names.map { .string($0) }),
          ]
        }),
      "met_at": metAt.map { .string("\($0)") } ?? .null,
    ]
  }
}

extension EffectFacts.Target {
  /// What became of it: `shop erased: 1 found, 3 erased, 0 left`.
  fileprivate var words: String {
    let counts = [("found", before), ("erased", affected), ("left", after)]
      .compactMap { name, count in count.map { "\($0) \(name)" } }
    return "\(name) \(state)" + (counts.isEmpty ? "" : ": \(counts.joined(separator: ", "))")
      + (note.map { " (\($0))" } ?? "")
  }
}
