import AccountServices
import Configuration
import EventLoop
import Kafka

/// `siwa dead-letters show`: a letter as it stands.
struct DeadLettersShow: Command {
  static let name = "dead-letters show"
  static let summary = "Shows letters whole: all headers, and the event. It names a person."
  static let details = """
    Exit codes: 0 shown, 1 no such letter waits, 2 the command line or the configuration has to change first, 3 the
    cluster cannot be asked.

    """
  static let examples = [
    CommandExample("siwa dead-letters show --consumer token-revoker --letter 0/17", "The letter that 'list' calls so.")
  ]

  private let access: DeadLettersAccess
  private let selection: LetterSelection

  init(reading arguments: inout CommandArguments) {
    access = DeadLettersAccess(reading: &arguments)
    selection = LetterSelection(reading: &arguments)
  }

  func run() async -> ExitCode {
    await access.run { box, letters throws(KafkaError) in
      guard let chosen = selection.choose(from: letters, keepingOrder: false) else { return .failure }
      var isWhole = true
      try await box.contents(of: chosen) { letter, content throws(KafkaError) in
        Terminal.say("letter: \(letter.place)")
        if letter.isShortened {
          for (name, text) in letter.facts.sorted(by: { $0.key < $1.key }) {
            Terminal.say("\(String(printable: name)): \(String(printable: text))")
          }
        }
        guard let content else {
          isWhole = false
          return Terminal.complain("siwa: \(letter.wordsOfLoss)")
        }
        if letter.isShortened { Terminal.say("It is too large for its topic; this is the record where it stood:") }
        for header in content.headers {
          Terminal.say("\(String(printable: header.name)): \(String(printable: header.value ?? []))")
        }
        Terminal.say(String(printable: content.value ?? []))
      }
      return isWhole ? .success : .failure
    }
  }
}
