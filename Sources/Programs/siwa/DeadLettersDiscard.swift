import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Kafka

/// `siwa dead-letters discard`: nothing follows from letters.
struct DeadLettersDiscard: Command {
  static let name = "dead-letters discard"
  static let summary = "Notes that nothing follows from letters, why, and who says so."
  static let details = """
    The note takes the letters' place on their topic, where it stays; what they say is gone once Kafka has compacted it,
    within a week. Of the data eraser's, what their erasures have left open is closed in the account store before: 'siwa
    erasures list' says it no more.

    Exit codes: 0 noted, 1 no such letter waits, 2 the command line or the configuration has to change first, 3 the
    cluster or the store cannot be asked.

    """
  static let examples = [
    CommandExample(
      "siwa dead-letters discard --consumer token-revoker --letter 0/17 --reason 'a rehearsal'", "One, with its reason."
    )
  ]

  private let access: DeadLettersAccess
  private let selection: LetterSelection
  private let reason: String
  private let person: String

  init(reading arguments: inout CommandArguments) {
    access = DeadLettersAccess(reading: &arguments)
    selection = LetterSelection(reading: &arguments)
    reason = arguments.read(
      "--reason", "TEXT", .text(3...1000), "Why nothing follows; it is kept, without personal data.")
    person = arguments.readPerson()
  }

  func run() async -> ExitCode {
    await access.run { box, letters throws(KafkaError) in
      guard let chosen = selection.choose(from: letters, keepingOrder: false) else { return .failure }
      if access.consumer == .dataEraser {
        let exit = await access.withStore { store throws(AccountStoreError) in
          for event in chosen.compactMap({ $0["ce_id"] }).compactMap({ EventID($0) }) {
            _ = try await store.discardErasure(
              of: event, target: nil, note: "discarded by \(person): \(reason)", at: .now)
          }
          return .success
        }
        guard exit == .success else { return exit }
      }
      try await box.discard(chosen, reason: reason, by: person, at: .now) { Terminal.say("discarded  \($0.line)") }
      return .success
    }
  }
}
