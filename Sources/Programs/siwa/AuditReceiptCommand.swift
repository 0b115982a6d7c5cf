import AccountEvents
import AccountServices
import Configuration
import EventLoop
import TransparencyLog

/// `siwa audit receipt`: proofs of what the log has about an event.
struct AuditReceiptCommand: Command {
  static let name = "audit receipt"
  static let summary = "Writes proofs of all that an audit log has about an event: what an operator hands out."
  static let details = """
    One file for each entry: the obligation, what each consumer did, what people decided. Each is a .tlog-proof (C2SP), has
    the entry with it, and is verified offline with 'siwa audit check' or docs/verify.py, by the log's key alone. It has no
    personal data, but the account's keyed hash and, of decisions, what people wrote.

    Exit codes: 0 written, 1 the log has nothing about the event, or something does not hold, 2 the command line or the
    configuration makes no sense, 3 the log cannot be read at the moment.

    """
  static let examples = [
    CommandExample("siwa audit receipt S25cB0PbHs6y97gYYmgydQ -o receipts", "All of them, into a directory.")
  ]

  private let event: EventID
  private let directory: String
  private let access: AuditAccess

  init(reading arguments: inout CommandArguments) {
    event = arguments.read("EVENT-ID", .eventID, "The event, as 'siwa audit completeness' and outcomes name it.")
    directory = arguments.readIfPresent("-o", "DIRECTORY", .path, "Where the files are written; otherwise here.") ?? "."
    access = AuditAccess(reading: &arguments)
  }

  func run() async -> ExitCode {
    await access.open { log, _ in
      let bar = ProgressBar("entries")
      let entries = try await log.entries(of: event) { bar.note(done: $0, of: $1) }
      bar.clear()
      guard !entries.isEmpty else {
        Terminal.complain("siwa: the log has nothing about \(event) in its \(log.size) entries")
        return .failure
      }
      for path in try await log.writeReceipts(of: entries, about: event, to: directory) { Terminal.say(path) }
      return .success
    }
  }
}
