import AccountEvents
import AccountServices
import Configuration
import EventLoop
import JSON

/// `siwa spool list`: the records that wait.
struct SpoolList: Command {
  static let name = "spool list"
  static let summary = "Lists what an ingress has promised and not yet put onto Kafka."
  static let details = """
    A line for each record, oldest first, without personal data: its number, since when it waits, its topic, its type and
    the event's id. Those that cannot be read stand first. Which ones Kafka refuses, the log of the ingress says, by their
    numbers. It may be run while the ingress runs.

    Exit codes: 0 listed, 1 there is no spool or it cannot be read, 2 the command line or the configuration makes no sense.

    """
  static let examples = [
    CommandExample("siwa spool list", "The oldest hundred."),
    CommandExample(
      "siwa spool list --directory /var/lib/siwa/spool/damaged-2026-01-01T00-00-00.000Z", "What was set aside."),
  ]

  private let access: SpoolAccess
  private let limit: Int
  private let isJSON: Bool

  init(reading arguments: inout CommandArguments) {
    access = SpoolAccess(reading: &arguments)
    limit = arguments.read("--limit", "NUMBER", .integer(1...100_000), default: 100, "How many are listed at most.")
    isJSON = arguments.flag("--json", "Says it as one line of JSON, times in milliseconds.")
  }

  func run() async -> ExitCode {
    await access.look { [limit] folder throws(SpoolError) in
      try SpoolReport(lookingInto: folder, listing: limit)
    } then: { report, _ in
      let damaged = report.damaged.prefix(limit)
      if isJSON {
        let list = damaged.map { ["record": .integer($0), "damaged": true] as JSONValue } + report.first.map(\.json)
        Terminal.say(String(decoding: JSONValue.array(list).bytes, as: UTF8.self))
      } else {
        for sequence in damaged { Terminal.say("\(sequence)  damaged") }
        for entry in report.first { Terminal.say(entry.line) }
        if damaged.isEmpty, report.first.isEmpty { Terminal.say("None waits.") }
      }
      return .success
    }
  }
}

extension SpoolReport.Entry {
  /// A line without personal data.
  var line: String { "\(sequence)  \(since)  \(topic)  \(String(printable: type))  \(String(printable: eventID))" }

  fileprivate var json: JSONValue {
    [
      "record": .integer(sequence), "since": .integer(since.milliseconds), "topic": .string(topic.name),
      "type": .string(type), "event": .string(eventID), "damaged": false,
    ]
  }
}
