import AccountServices
import Configuration
import EventLoop

/// `siwa spool show`: records as they stand.
struct SpoolShow: Command {
  static let name = "spool show"
  static let summary = "Shows records that wait in a spool; whom they name, only with --personal."
  static let details = """
    It may be run while the ingress runs.

    Exit codes: 0 shown, 1 no such record waits, one cannot be read, or there is no spool, 2 the command line or the
    configuration makes no sense.

    """
  static let examples = [
    CommandExample("siwa spool show --record 17", "Its topic, type and team, and how large it is."),
    CommandExample("siwa spool show --record 17 --personal", "All of it, with what Apple signed."),
  ]

  private let access: SpoolAccess
  private let selection: RecordSelection
  private let isPersonal: Bool

  init(reading arguments: inout CommandArguments) {
    access = SpoolAccess(reading: &arguments)
    selection = RecordSelection(reading: &arguments, allowingAll: false)
    isPersonal = arguments.flag("--personal", "Shows the person too: key, subject, event, and Apple's signature.")
  }

  func run() async -> ExitCode {
    await access.look { [sequences = selection.named] folder throws(SpoolError) in
      try SpoolReport.records(sequences, lookingInto: folder)
    } then: { found, _ in
      for (sequence, record) in found {
        if let record {
          for line in record.lines(personal: isPersonal) { Terminal.say(line) }
        } else {
          Terminal.complain("siwa: record \(sequence) is damaged and cannot be read")
        }
      }
      if let missing = selection.named.subtracting(found.map(\.sequence)).min() {
        Terminal.complain("siwa: no record \(missing) waits")
        return .failure
      }
      return found.allSatisfy { $0.record != nil } ? .success : .failure
    }
  }
}
