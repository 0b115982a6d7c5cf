import AccountEvents
import AccountServices
import Configuration
import EventLoop
import JSON

/// `siwa audit explain`: the whole way of one notification.
struct AuditExplain: Command {
  static let name = "audit explain"
  static let summary =
    "Tells the whole way of one event: when it was signed, came, what each consumer did, who decided what."
  static let details = """
    A line for each step in the order of their times, with the record's place in Kafka and the entry of the log that proves
    it. Times are those of whoever has said them: Apple when it happened and was signed, the broker when it came, each
    consumer when it was done. Then who has not said anything yet, and the checkpoint that all of it is proven by.

    Exit codes: 0 told, 1 the log has nothing about the event, 2 the command line or the configuration makes no sense, 3 the
    log cannot be read at the moment.

    """
  static let examples = [
    CommandExample("siwa audit explain S25cB0PbHs6y97gYYmgydQ", "What became of a notification."),
    CommandExample("siwa audit explain S25cB0PbHs6y97gYYmgydQ --json", "The same for a program."),
  ]

  private let isJSON: Bool
  private let access: EventAccess

  init(reading arguments: inout CommandArguments) {
    isJSON = arguments.flag("--json", "Says it as one object of JSON.")
    access = EventAccess(reading: &arguments)
  }

  func run() async -> ExitCode {
    await access.run { log, entries, known in
      let explanation = EventExplanation(entries, of: ConcernedConsumers(without: known.absent))
      if isJSON {
        Terminal.say(String(decoding: explanation.json.bytes, as: UTF8.self))
      } else {
        say(explanation, by: log)
      }
      return .success
    }
  }

  private func say(_ explanation: EventExplanation, by log: AuditLog) {
    Terminal.say("event \(access.event)")
    let width = explanation.steps.map(\.what.count).max() ?? 0
    for step in explanation.steps {
      let what = step.what + String(repeating: " ", count: width - step.what.count)
      let proof = step.record.map { record in
        let words = step.entry.map { "entry \($0)" } ?? ""
        return step.words.isEmpty ? "\(record), \(words)" : " (\(record), \(words))"
      }
      Terminal.say("\(step.time)  \(what)  \(String(printable: step.words))\(proof ?? "")")
    }
    for duty in explanation.duties where !duty.missing.isEmpty {
      let age = TimeSpan.words(Timestamp.now.milliseconds - duty.obligation.came.milliseconds)
      Terminal.say("Open for \(age): waits for \(duty.missing.names.joined(separator: ", ")).")
    }
    if let metAt = explanation.metAt, let came = explanation.duties.first?.obligation.came {
      Terminal.say("Met \(TimeSpan.words(metAt.milliseconds - came.milliseconds)) after it came.")
    }
    Terminal.say(
      "Proven by the log's checkpoint of \(log.size) entries; 'siwa audit receipt \(access.event)' writes the proofs.")
  }
}
