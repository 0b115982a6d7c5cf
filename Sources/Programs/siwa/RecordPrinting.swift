import AccountEvents
import AccountServices
import Configuration
import EventLoop
import JSON
import Kafka

/// How records are shown: without personal data, unless somebody asks for it.
struct RecordPrinting {
  let isJSON: Bool
  let isPersonal: Bool

  init(reading arguments: inout CommandArguments) {
    isJSON = arguments.flag("--json", "Shows each record as a line of JSON.")
    isPersonal = arguments.flag(
      "--personal", "Shows personal data, too: whom records are about, and all that they say.")
  }

  /// What is shown of a record.
  func text(of record: ConsumedRecord, on topic: ReplayedTopic) -> String {
    switch (isJSON, isPersonal) {
    case (true, true): String(decoding: RecordLine.record(record), as: UTF8.self)
    case (true, false): String(decoding: json(of: record, on: topic).bytes, as: UTF8.self)
    case (false, true): ([line(of: record, on: topic)] + contents(of: record)).joined(separator: "\n") + "\n"
    case (false, false): line(of: record, on: topic)
    }
  }

  private typealias Column = (name: String, text: String?)

  private func columns(of record: ConsumedRecord, on topic: ReplayedTopic) -> [Column] {
    let facts = topic.facts(of: record)
    let time = record.timestamp.flatMap { Timestamp(milliseconds: $0) }
    let first: [Column] = [
      ("record", "\(record.position.partition)/\(record.position.offset)"), ("appended", time?.description),
      ("type", record.value == nil ? "tombstone" : facts.type), ("event", facts.event?.text),
    ]
    switch topic {
    case .events: return first + [("team", facts.team?.text), ("audience", facts.audience?.text)]
    case .emailRelay: return first + [("team", facts.team?.text)]
    case .outcomes:
      let account = record.key.flatMap { AccountHash(String(decoding: $0, as: UTF8.self)) }
      return first + [("consumer", facts.source), ("account", account?.description)]
    }
  }

  private func line(of record: ConsumedRecord, on topic: ReplayedTopic) -> String {
    columns(of: record, on: topic).map { $0.text ?? "-" }.joined(separator: "  ")
  }

  private func json(of record: ConsumedRecord, on topic: ReplayedTopic) -> JSONValue {
    .object(
      columns(of: record, on: topic).map { JSONValue.Member($0.name, $0.text.map { .string($0) } ?? .null) })
  }

  private func contents(of record: ConsumedRecord) -> [String] {
    let headers = record.headers.map { header in
      "\(String(printable: header.name)): \(header.value.map { String(printable: $0) } ?? "-")"
    }
    return ["key: \(record.key.map { String(printable: $0) } ?? "-")"] + headers
      + [record.value.map { String(printable: $0) } ?? "(tombstone)"]
  }
}

/// The standard output, as where records are replayed to.
@Loop
final class TerminalDestination: ReplayDestination {
  private let text: (ConsumedRecord) -> String

  init(_ text: @escaping (ConsumedRecord) -> String) { self.text = text }

  func take(_ records: [ConsumedRecord]) async throws(ReplayFailure) {
    for (index, record) in records.enumerated() where !Terminal.say(text(record)) {
      throw ReplayFailure(of: Array(records[index...]), OutputEnded())
    }
  }
}

/// The standard output takes no more; the end of the program says why.
struct OutputEnded: Error, CustomStringConvertible {
  let description = "not all of it is shown"
}
