import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Kafka

/// `siwa dead-letters discard` and `siwa quarantine discard`.
struct LettersDiscard<Room: LetterRoom>: Command {
  static var name: String { "\(Room.name) discard" }
  static var summary: String { "Notes that nothing follows from letters, why, and who says so." }
  static var details: String {
    """
    The note takes the letters' place on their topic, where it stays; what they say is gone once Kafka has compacted it,
    within a week. Of the data eraser's dead letters, what their erasures have left open is closed in the account store
    before: 'siwa erasures list' says it no more. A letter whose record has not proven what it says closes nothing, and is
    named where its id is that of an open erasure: 'siwa erasures discard' closes that.

    Exit codes: 0 noted, 1 no such letter waits, 2 the command line or the configuration has to change first, 3 the
    cluster or the store cannot be asked.

    """
  }
  static var examples: [CommandExample] {
    [
      CommandExample(
        "siwa \(name)\(Room.exampleOptions) --letter 0/17 --reason 'a rehearsal'", "One, with its reason."),
      CommandExample(
        "siwa \(name)\(Room.exampleOptions) --account - --reason 'the account is erased'",
        "All of the account that stands on the standard input."),
    ]
  }

  private let access: LettersAccess
  private let selection: LetterSelection
  private let verdict: LetterVerdict

  init(reading arguments: inout CommandArguments) {
    access = LettersAccess(Room.self, reading: &arguments)
    selection = LetterSelection(reading: &arguments)
    verdict = LetterVerdict(.discarded, reading: &arguments)
  }

  func run() async -> ExitCode {
    await access.run { box, letters throws(KafkaError) in
      guard let chosen = selection.choose(from: letters, keepingOrder: false) else { return .failure }
      let report = verdict.report(of: chosen.count)
      if verdict.isRehearsal {
        for letter in chosen { report.note(letter, .done) }
        return report.end()
      }
      if case .deadLetters(.dataEraser) = access.topic {
        let exit = await closeErasures(of: chosen)
        guard exit == .success else { return exit }
      }
      try await box.discard(chosen, of: letters, verdict.decision) { report.note($0, $1) }
      return report.end()
    }
  }

  @Loop
  private func closeErasures(of letters: [Letter]) async -> ExitCode {
    let decision = verdict.decision
    let note = "discarded by \(decision.person)" + (decision.reason.map { ": \($0)" } ?? "")
    return await StoreAccess.open(access.options) { store throws(AccountStoreError) in
      for letter in letters {
        guard let event = letter["ce_id"].flatMap({ EventID($0) }) else { continue }
        // Whoever may write to the topic can name the id of an event, and whom it is about.
        if letter.isBelieved,
          let account = letter.account.flatMap({ Account(key: String(decoding: $0, as: UTF8.self)) })
        {
          _ = try await store.discardErasure(of: event, account: account, target: nil, note: note, at: decision.time)
        } else if try await store.erasureSteps(of: event).contains(where: \.state.isOpen) {
          Terminal.complain(
            "siwa: \(letter.place) has not proven that it is about event \(event), whose erasure stays open: see 'siwa erasures list'"
          )
        }
      }
      return .success
    }
  }
}
