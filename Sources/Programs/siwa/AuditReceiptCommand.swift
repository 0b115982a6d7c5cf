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
    configuration makes no sense, 3 the log cannot be read, or a file not be written.

    """
  static let examples = [
    CommandExample("siwa audit receipt S25cB0PbHs6y97gYYmgydQ -o receipts", "All of them, into a directory.")
  ]

  private let directory: String
  private let access: EventAccess

  init(reading arguments: inout CommandArguments) {
    directory = arguments.readIfPresent("-o", "DIRECTORY", .path, "Where the files are written; otherwise here.") ?? "."
    access = EventAccess(reading: &arguments)
  }

  func run() async -> ExitCode {
    await access.run { log, entries, _ in
      for path in try await log.writeReceipts(of: entries, about: access.event, to: directory) { Terminal.say(path) }
      return .success
    }
  }
}
