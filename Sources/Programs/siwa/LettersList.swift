import AccountServices
import Configuration
import EventLoop
import JSON
import Kafka

/// `siwa dead-letters list` and `siwa quarantine list`.
struct LettersList<Room: LetterRoom>: Command {
  static var name: String { "\(Room.name) list" }
  static var summary: String { "Lists \(Room.contents) and nobody has decided about yet." }
  static var details: String {
    """
    A line for each letter, oldest first, without personal data: \(Room.columns).

    Exit codes: 0 listed, 2 the command line or the configuration has to change first, 3 the cluster cannot be asked.

    """
  }
  static var examples: [CommandExample] {
    [
      CommandExample("siwa \(name)\(Room.exampleOptions)", "What waits."),
      CommandExample("siwa \(name)\(Room.exampleOptions) --json", "For another program."),
    ]
  }

  private let access: LettersAccess
  private let isJSON: Bool

  init(reading arguments: inout CommandArguments) {
    access = LettersAccess(Room.self, reading: &arguments)
    isJSON = arguments.flag("--json", "Says it as one line of JSON.")
  }

  func run() async -> ExitCode {
    await access.run { _, letters throws(KafkaError) in
      if isJSON {
        Terminal.say(String(decoding: JSONValue.array(letters.letters.map(\.json)).bytes, as: UTF8.self))
      } else {
        for letter in letters.letters { Terminal.say(letter.line) }
        if letters.letters.isEmpty { Terminal.say("None waits.") }
      }
      return .success
    }
  }
}
