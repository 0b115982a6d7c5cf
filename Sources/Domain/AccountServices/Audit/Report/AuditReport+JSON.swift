import AccountEvents
import EventLoop
package import JSON
import TransparencyLog

extension AuditReport {
  /// The report for programs: times as RFC 3339 has them, lengths in milliseconds. Long lists have their first thousand
  /// rows, and say how many there are.
  package var json: JSONValue {
    [
      "report": "siwa-audit-report/v1", "made_at": .string("\(madeAt)"),
      "from": .time(period.from), "to": .time(period.to),
      "deadline_ms": .integer(deadline.wholeNanoseconds / 1_000_000),
      "in_order": .boolean(isInOrder), "log": log,
      "obligations": total.json,
      "types": .object(types.map { .init($0.type, $0.figures.json) }),
      "open": open.json { $0.json(isOpen: true) }, "overdue": .integer(Int64(overdueCount)),
      "outcomes": .array(
        outcomes.map {
          ["consumer": .string($0.consumer), "outcome": .string($0.outcome), "count": .integer(Int64($0.count))]
        }),
      "decisions": decisions.json { $0.json }, "gaps": gaps.json { $0.json },
      "signatures": .object(signatures.map { .init($0.signature.rawValue, .integer(Int64($0.count))) }),
      "unproven": unproven.json { $0.json(isOpen: false) },
    ]
  }

  private var log: JSONValue {
    [
      "place": .string(place), "origin": .string(checkpoint.checkpoint.origin),
      "size": .integer(Int64(clamping: checkpoint.checkpoint.size)),
      "root": .string("\(checkpoint.checkpoint.root)"), "first_key": .string(firstKey.text),
      "signed_by": .string(checkpoint.key.text),
      "cosigned_by": .array(
        checkpoint.cosignatures.map {
          ["witness": .string($0.witness.text), "seconds": .integer(Int64(clamping: $0.time))]
        }),
      "uncosigned_size": checkpoint.uncosignedSize.map { JSONValue.integer(Int64(clamping: $0)) } ?? .null,
      "checkpoint": .string(String(decoding: checkpoint.note.bytes, as: UTF8.self)),
    ]
  }
}

extension AuditReport.Listing {
  fileprivate func json(_ row: (Row) -> JSONValue) -> JSONValue {
    ["count": .integer(Int64(count)), "rows": .array(rows.map(row))]
  }
}

extension AuditReport.ObligationRow {
  fileprivate func json(isOpen: Bool) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("entry", .integer(Int64(clamping: index))), .init("id", .string(obligation.id.text)),
      .init("type", .string(obligation.type)), .init("team", .string(obligation.team.text)),
      .init("audience", .string(obligation.audience.text)), .init("account", .string("\(obligation.account)")),
      .init("came", .time(obligation.came)), .init("signature", .string(obligation.signature.rawValue)),
    ]
    if isOpen {
      members += [
        .init("missing", .array(missing.names.map { .string($0) })), .init("age_ms", .integer(age)),
        .init("overdue", .boolean(isOverdue)),
      ]
    }
    return .object(members)
  }
}

extension AuditReport.DecisionRow {
  fileprivate var json: JSONValue {
    [
      "entry": .integer(Int64(clamping: index)), "time": .time(time), "decision": .string(decision),
      "subject": .string(subject), "id": .text(event?.text), "by": .text(person), "reason": .text(reason),
    ]
  }
}

extension AuditEntry.Gap {
  fileprivate var json: JSONValue {
    [
      "time": .time(time), "topic": .string(topic), "partition": .integer(Int64(partition)), "from": .integer(from),
      "to": .integer(to), "why": .string(cause.rawValue),
    ]
  }
}

extension Completeness.Figures {
  fileprivate var json: JSONValue {
    [
      "received": .integer(Int64(received)), "met": .integer(Int64(met)), "open": .integer(Int64(received - met)),
      "late": .integer(Int64(late)),
      "time_ms": [
        "p50": .number(times.quantile(perMille: 500)), "p90": .number(times.quantile(perMille: 900)),
        "p99": .number(times.quantile(perMille: 990)), "max": .number(times.count == 0 ? nil : times.maximum),
      ],
    ]
  }
}

extension JSONValue {
  fileprivate static func time(_ time: Timestamp?) -> JSONValue { text(time?.description) }
  fileprivate static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
  fileprivate static func number(_ number: Int64?) -> JSONValue { number.map { .integer($0) } ?? .null }
}
