import AccountEvents
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
    without it.

    Exit codes: 0 given to the consumer, 1 no such letter waits or its order would not hold, 2 the command line or the
    configuration has to change first, 3 the cluster cannot be asked.

    """
  static let examples = [
    CommandExample("siwa dead-letters retry --consumer token-revoker --letter 0/17", "One."),
    CommandExample("siwa dead-letters retry --consumer data-eraser --all --cause no-policy", "All with one cause."),
  ]

  private let access: DeadLettersAccess
  private let selection: LetterSelection
  private let person: String

  init(reading arguments: inout CommandArguments) {
    access = DeadLettersAccess(reading: &arguments)
    selection = LetterSelection(reading: &arguments)
    person = arguments.readPerson()
  }

  func run() async -> ExitCode {
    await access.run { box, letters throws(KafkaError) in
      guard let chosen = selection.choose(from: letters, keepingOrder: true) else { return .failure }
      try await box.retry(chosen, by: person, at: .now) { Terminal.say("retried  \($0.line)") }
      return .success
    }
  }
}

extension CommandArguments {
  /// Who decides: as the command line or the environment says.
  mutating func readPerson() -> String {
    readIfPresent("--by", "NAME", .text(1...100), "Who decides it, which is kept; without it, the variable USER says.")
      ?? ConfigurationSources.processEnvironment["USER"] ?? "unknown"
  }
}
