import AccountEvents
import AccountServices
import Configuration
import EventLoop

/// What the commands about one event have in common: which event, and the log that has entries about it.
struct EventAccess {
  /// The event.
  let event: EventID
  private let access: AuditAccess

  init(reading arguments: inout CommandArguments) {
    event = arguments.read("EVENT-ID", .eventID, "The event, as Apple's jti or an outcome's cause has it.")
    access = AuditAccess(reading: &arguments)
  }

  /// Runs `body` with the log and its entries about the event. Where there are none, that is said.
  @Loop
  func run(
    _ body: @Loop (_ log: AuditLog, [(index: UInt64, entry: AuditEntry)], AuditAccess.Log) async throws -> ExitCode
  ) async -> ExitCode {
    await access.open { log, known in
      let bar = ProgressBar("entries")
      let entries = try await log.entries(of: event) { bar.note(done: $0, of: $1) }
      bar.clear()
      guard !entries.isEmpty else {
        Terminal.complain("siwa: the log has nothing about \(event) in its \(log.size) entries")
        return .failure
      }
      return try await body(log, entries, known)
    }
  }
}
