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
    await access.run { _, letters throws(KafkaError) in
      guard let chosen = selection.choose(from: letters, keepingOrder: false) else { return .failure }
      for letter in chosen {
        Terminal.say("letter: \(letter.place)")
        for header in letter.record.headers {
          Terminal.say("\(header.name): \(Self.printable(header.value ?? []))")
        }
        Terminal.say(Self.printable(letter.record.value ?? []))
      }
      return .success
    }
  }

  /// Text that cannot command a terminal.
  private static func printable(_ bytes: [UInt8]) -> String {
    String(
      String.UnicodeScalarView(
        String(decoding: bytes, as: UTF8.self).unicodeScalars.map { scalar in
          scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
            ? "\u{fffd}" : scalar
        }))
  }
}
