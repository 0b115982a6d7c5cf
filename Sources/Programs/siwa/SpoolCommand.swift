import AccountEvents
import AccountServices
import Configuration
import EventLoop
import JSON

/// `siwa spool`: what was answered 200 and waits for Kafka.
struct SpoolCommand: Command {
  static let name = "spool"
  static let summary = "Shows what an ingress has promised and not yet put onto Kafka."
  static let details = """
    It shows no personal data, changes nothing, and may be run while the ingress runs; it has to be allowed to read the
    spool's directory. What waits is published by the ingress itself, oldest first, as soon as Kafka takes it.

    Exit codes: 0 shown, 1 there is no spool or it cannot be read, 2 the command line or the configuration makes no sense.

    """
  static let examples = [
    CommandExample("siwa spool", "How much waits, since when, and of which types."),
    CommandExample("siwa spool --list --limit 20", "The twenty oldest records, one a line."),
    CommandExample(
      "siwa spool --json --directory /var/lib/siwa/spool",
      "The same for scripts: one JSON object, times in milliseconds."),
  ]

  let access: SpoolAccess
  let isListed: Bool
  let limit: Int
  let isJSON: Bool

  init(reading arguments: inout CommandArguments) {
    access = SpoolAccess(reading: &arguments)
    isListed = arguments.flag("--list", "Lists the records too, oldest first.")
    limit = arguments.read(
      "--limit", "NUMBER", .integer(1...100_000), default: 100, "How many records are listed at most.")
    isJSON = arguments.flag("--json", "Prints one JSON object.")
  }

  func run() async -> ExitCode {
    await access.look { [isListed, limit] folder throws(SpoolError) in
      try SpoolReport(lookingInto: folder, listing: isListed ? limit : 0)
    } then: { report, folder in
      Terminal.say(isJSON ? json(report, folder) : text(report, folder))
      return .success
    }
  }

  private func text(_ report: SpoolReport, _ folder: String) -> String {
    var lines = ["Spool    \(folder)", "Records  \(report.records)", "Bytes    \(report.bytes)"]
    if let oldest = report.oldest { lines.append("Oldest   \(oldest), \(age(of: oldest) / 1000) seconds ago") }
    if !report.damaged.isEmpty {
      let places = report.damaged.prefix(limit).map { "\($0)" }.joined(separator: ", ")
      lines.append("Damaged  \(report.damaged.count), which stay: \(places)")
    }
    lines += report.counts.map { "\($0.records)  \($0.topic)  \($0.type)" }
    lines += report.first.map(\.line)
    return lines.joined(separator: "\n")
  }

  private func json(_ report: SpoolReport, _ folder: String) -> String {
    var members: [JSONValue.Member] = [
      .init("directory", .string(folder)), .init("records", .integer(Int64(report.records))),
      .init("bytes", .integer(Int64(report.bytes))),
      .init("oldest", report.oldest.map { .integer($0.milliseconds) } ?? .null),
      .init("oldestAge", report.oldest.map { .integer(age(of: $0)) } ?? .null),
      .init("damaged", .array(report.damaged.map { .integer($0) })),
      .init(
        "counts",
        .array(
          report.counts.map {
            ["topic": .string($0.topic.name), "type": .string($0.type), "records": .integer(Int64($0.records))]
          })),
    ]
    if isListed {
      let list = report.first.map { entry -> JSONValue in
        [
          "sequence": .integer(entry.sequence), "since": .integer(entry.since.milliseconds),
          "topic": .string(entry.topic.name), "type": .string(entry.type), "event": .string(entry.eventID),
        ]
      }
      members.append(.init("list", .array(list)))
    }
    return String(decoding: JSONValue.object(members).bytes, as: UTF8.self)
  }

  /// In milliseconds.
  private func age(of oldest: Timestamp) -> Int64 { max(0, Timestamp.now.milliseconds - oldest.milliseconds) }
}
