import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop

/// `siwa erasures discard`: nothing more is to be erased of an event at a target.
struct ErasuresDiscard: Command {
  static let name = "erasures discard"
  static let summary = "Notes that nothing more is to be erased at a target for an event, why, and who says so."
  static let details = """
    For what 'siwa erasures list' shows and nobody will bring to its end: of a target that is gone, of an event that is
    lost, or of data that was erased by hand. And for what 'siwa erasures due' shows, once it was erased by hand. The note
    takes the place of what the store knew of the target; siwa-data-eraser does not ask the target for this event again,
    and where nothing else is open it ends the erasure, with the target as discarded in its outcome, and the note.

    The note, with NAME and TEXT, goes onto apple.account-outcomes.v1, which is kept for ever, and into the audit log, from
    which nobody can take it again. So NAME is never guessed: give a role, or the name of somebody who agrees to that. And
    TEXT says why without naming the person whose data it is about.

    Exit codes: 0 noted, 1 nothing is open or due there, 2 the command line, the configuration or the store has to change
    first, 3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample(
      "siwa erasures discard S25cB0PbHs6y97gYYmgydQ shop --by support --reason 'the shop was closed, its disks are shredded'",
      "One target of one event.")
  ]

  private let event: EventID
  private let target: String
  private let person: String
  private let reason: String
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    event = arguments.read("EVENT", .eventID, "The event's id, as 'siwa erasures list' shows it.")
    target = arguments.read("TARGET", .text(1...40), "The target, as 'siwa erasures list' shows it.")
    person = arguments.read(
      "--by", "NAME", .text(1...100),
      "Who decides it: a role, or a name that may be kept. It stands in the outcome for good.")
    reason = arguments.read(
      "--reason", "TEXT", .text(3...1000),
      "Why nothing more is to be erased; it stands in the outcome for good, without personal data.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    await StoreAccess.open(options) { store throws(AccountStoreError) in
      let closed = try await store.discardErasure(
        of: event, account: nil, target: target, note: "discarded by \(person): \(reason)", at: .now)
      guard closed > 0 else {
        Terminal.complain("siwa: nothing is open or due of \(event) at \(target)")
        return .failure
      }
      Terminal.say("discarded  \(event)  \(target)")
      return .success
    }
  }
}
