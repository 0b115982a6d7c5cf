import AccountServices
import Configuration
import EventLoop
import JSON
import Kafka

/// `siwa dead-letters list`: what a consumer could not process.
struct DeadLettersList: Command {
  static let name = "dead-letters list"
  static let summary = "Lists what a consumer could not process and nobody has decided about yet."
  static let details = """
    A line for each letter, oldest first, without personal data: its place, when it was put aside, why, after how many
    attempts, the event's type and id, and where its record stood; 'given-up' where it was tried until its topic was about
    to forget it, 'truncated' where the letter was too large for its topic and only says where the record stands.

    Exit codes: 0 listed, 2 the command line or the configuration has to change first, 3 the cluster cannot be asked.

    """
  static let examples = [
    CommandExample("siwa dead-letters list --consumer token-revoker", "Those of the token revoker."),
    CommandExample("siwa dead-letters list --consumer email-relay --json", "For another program."),
  ]

  private let access: DeadLettersAccess
  private let isJSON: Bool

  init(reading arguments: inout CommandArguments) {
    access = DeadLettersAccess(reading: &arguments)
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
