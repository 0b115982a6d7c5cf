import AccountServices
import Configuration
import EventLoop
import Kafka

/// `siwa dead-letters retry`: gives letters to their consumer again.
struct DeadLettersRetry: Command {
  static let name = "dead-letters retry"
  static let summary = "Gives letters to their consumer again, in their order, and to nobody else."
  static let details = """
    The records go to the consumer's retry topic as they were; the consumer judges them like any other: what was settled,
    or has been overtaken meanwhile, has no effect. A letter of an account that has an earlier one waiting is not retried
    without it. One whose record is gone is said and left, and the others are retried; so is one that the retry topic never
    takes (max.message.bytes, mostly), with the later ones of its account.

    Exit codes: 0 given to the consumer, 1 no such letter waits, its order would not hold, or some were left, 2 the
    command line or the configuration has to change first, 3 the cluster cannot be asked.

    """
  static let examples = [
    CommandExample("siwa dead-letters retry --consumer token-revoker --letter 0/17", "One."),
    CommandExample("siwa dead-letters retry --consumer data-eraser --all --cause no-policy", "All with one cause."),
  ]

  private let access: LettersAccess
  private let selection: LetterSelection
  private let verdict: LetterVerdict

  init(reading arguments: inout CommandArguments) {
    access = LettersAccess(DeadLettersRoom.self, reading: &arguments)
    selection = LetterSelection(reading: &arguments)
    verdict = LetterVerdict(.retried, reading: &arguments)
  }

  func run() async -> ExitCode {
    guard case .deadLetters(let consumer) = access.topic else { return .misuse }
    return await access.run { box, letters throws(KafkaError) in
      guard let chosen = selection.choose(from: letters, keepingOrder: true) else { return .failure }
      let report = verdict.report(of: chosen.count)
      if verdict.isRehearsal {
        try await box.contents(of: chosen) { letter, content throws(KafkaError) in
          report.note(letter, content == nil ? .left(letter.wordsOfLoss) : .done)
        }
      } else {
        try await box.retry(chosen, of: letters, to: consumer, verdict.decision) { report.note($0, $1) }
      }
      return report.end()
    }
  }
}
