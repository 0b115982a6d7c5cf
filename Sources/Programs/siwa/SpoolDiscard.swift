import AccountEvents
import AccountServices
import Configuration
import EventLoop

/// `siwa spool discard`: nothing follows from records.
struct SpoolDiscard: Command {
  static let name = "spool discard"
  static let summary = "Takes records out of a spool from which nothing is to follow, and notes why and who says so."
  static let details = """
    What an answer of 200 promised is given up by that. The ingress must not run meanwhile: it counts what it holds. The
    note stands in the file decisions.jsonl in the spool's directory, without personal data.

    Exit codes: 0 noted and taken out, 1 no such record waits, the ingress has the spool, or it cannot be written, 2 the
    command line or the configuration makes no sense.

    """
  static let examples = [
    CommandExample("siwa spool discard --record 17 --reason 'a rehearsal'", "One, with its reason.")
  ]

  private let access: SpoolAccess
  private let selection: RecordSelection
  private let reason: String
  private let person: String

  init(reading arguments: inout CommandArguments) {
    access = SpoolAccess(reading: &arguments)
    selection = RecordSelection(reading: &arguments, allowingAll: false)
    reason = arguments.read(
      "--reason", "TEXT", .text(3...1000), "Why nothing follows; it is kept, without personal data.")
    person = arguments.readPerson()
  }

  func run() async -> ExitCode {
    await access.withStopped { spool throws(SpoolError) in
      guard let chosen = selection.choose(from: try await spool.places()) else { return .failure }
      for sequence in chosen {
        let record = try await spool.record(sequence)
        try await spool.settle(sequence, record, .discarded(reason: reason), by: person, at: .now)
        Terminal.say("discarded  \(sequence)")
      }
      return .success
    }
  }
}
