import AccountServices
import Configuration
import EventLoop
import Kafka

/// `siwa dead-letters show` and `siwa quarantine show`.
struct LettersShow<Room: LetterRoom>: Command {
  static var name: String { "\(Room.name) show" }
  static var summary: String { "Shows letters: all headers without personal data; with --personal, all that there is." }
  static var details: String {
    """
    Exit codes: 0 shown, 1 no such letter waits, 2 the command line or the configuration has to change first, 3 the
    cluster cannot be asked.

    """
  }
  static var examples: [CommandExample] {
    [
      CommandExample("siwa \(name)\(Room.exampleOptions) --letter 0/17", "The letter that 'list' calls so."),
      CommandExample(
        "siwa \(name)\(Room.exampleOptions) --letter 0/17 --personal",
        "The same with whom it is about and what it says."),
    ]
  }

  private let access: LettersAccess
  private let selection: LetterSelection
  private let isPersonal: Bool

  init(reading arguments: inout CommandArguments) {
    access = LettersAccess(Room.self, reading: &arguments)
    selection = LetterSelection(reading: &arguments)
    isPersonal = arguments.flag("--personal", "Shows personal data, too: whom it is about, and the event itself.")
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
        say(content)
      }
      return isWhole ? .success : .failure
    }
  }

  private func say(_ record: ConsumedRecord) {
    for header in record.headers {
      let isShown = isPersonal || LetterTopic.isImpersonal(header.name)
      let text = isShown ? String(printable: header.value ?? []) : "(personal)"
      Terminal.say("\(String(printable: header.name)): \(text)")
    }
    Terminal.say(isPersonal ? String(printable: record.value ?? []) : "(\(record.value?.count ?? 0) bytes, personal)")
  }
}
