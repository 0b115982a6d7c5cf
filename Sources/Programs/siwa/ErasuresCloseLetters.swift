import AccountEvents
import AccountServices
import AccountStore
import AppleID
import Configuration
import EventLoop
import Kafka

/// `siwa erasures close-letters`: letters of erased people of which nothing follows any more.
struct ErasuresCloseLetters: Command {
  static let name = "erasures close-letters"
  static let summary = "Closes the letters of erased accounts from which, by the ledger, nothing follows any more."
  static let details = """
    Letters in quarantine and among the dead letters name people, and wait until somebody decides, also beyond the erasure
    of their accounts. This command decides where nothing is left to decide: it asks the ledger of each consumer that the
    event concerns, and where the event is settled, or the erasure covers it, a note takes the letter's place as after
    'discard'. What a quarantined letter says is believed only where Apple signed it. Of the data eraser's dead letters, what
    their erasures have left open is closed, too, where a weightier erasure has covered it.

    A line on the standard output for each letter that is closed, without personal data. Those of erased accounts that stay
    are named on the standard error: letters that cannot be read, that did not prove what they say ('unverified'), of a type
    that this version does not know, of a consumer of your own, of what happened after the erasure, or of an erasure that has
    left open a target which no weightier one has come to. It may be broken off; the same again changes nothing.

    Exit codes: 0 no letter of an erased account waits any more, 1 some stay for a person to decide, 2 the command line, the
    configuration or the store has to change first, 3 the cluster or the store cannot be asked.

    """
  static let examples = [
    CommandExample("siwa erasures close-letters --dry-run", "What would be closed, and what would stay."),
    CommandExample("siwa erasures close-letters --by cron", "Once a day."),
  ]

  /// How long the cluster may take for an answer, or be silent while it hands over all letters.
  private static let patience = Duration.seconds(30)

  private let person: String
  private let isRehearsal: Bool
  private let consumers: [ConsumerName]
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    person = arguments.readPerson()
    isRehearsal = arguments.flag("--dry-run", "Says what would be closed, and changes nothing.")
    consumers =
      TopicPlan.consumers
      + arguments.readAll(
        "--consumer", "NAME", .consumerName, "A consumer of your own, whose letters are named; may be repeated.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    do { return try await close() } catch { return ExitCode(complainingOf: error) }
  }

  @Loop
  private func close() async throws -> ExitCode {
    let sources = options.sources(environment: ConfigurationSources.processEnvironment)
    let verifier = try ConfigurationSchema.siwa.load(NotificationSettings.self, from: sources).value.verifier
    let groups = try ConfigurationSchema.siwa.load(ConsentGroups.self, from: sources).value
    let kafka = try options.kafka()
    let store = try await ConfigurationSchema.siwa.load(StoreSettings.self, from: sources).value.open()
    let result: Result<Int, any Error>
    do {
      let judge = ErasedLetters(store, EventInterest.all(groups))
      var left = 0
      for topic in [LetterTopic.quarantine] + consumers.map({ .deadLetters(of: $0) }) {
        let box = LetterBox(kafka, topic, within: Self.patience, log: ConfigurationOptions.kafkaLog)
        left += try await close(in: box, topic, judge, store, verifier)
      }
      result = .success(left)
    } catch { result = .failure(error) }
    await store.close()
    return try result.get() == 0 ? .success : .failure
  }

  /// Closes what is moot among the letters of a topic, and returns how many letters of erased accounts stay.
  @Loop
  private func close(
    in box: LetterBox, _ topic: LetterTopic, _ judge: ErasedLetters, _ store: any AccountStore,
    _ verifier: NotificationVerifier
  ) async throws -> Int {
    let letters = try await box.read()
    let erased = try await judge.erased(among: letters.letters)
    if erased.isEmpty { return 0 }
    let release = topic == .quarantine ? QuarantineRelease(verifier, keys: try await box.signingKeys()) : nil
    var read: [(letter: Letter, event: AccountEvent?)] = []
    try await box.contents(of: erased) { letter, content throws(KafkaError) in
      read.append((letter, letter.isUnverified ? nil : content.flatMap { event(in: $0, release) }))
    }
    let areMoot = try await judge.areMoot(read, on: topic)
    let decided = zip(read, areMoot).filter(\.1).map(\.0)
    let moot = decided.map(\.letter)
    for (letter, isMoot) in zip(read.map(\.letter), areMoot) where !isMoot {
      Terminal.complain(
        "siwa: \(topic.topic): \(letter.place) stays: look at it with 'show', then retry, release or discard it")
    }
    let decision = LetterDecision(.discarded, because: "the account is erased", by: person, at: .now)
    if isRehearsal {
      for letter in moot { Terminal.say("would be closed  \(topic.topic)  \(letter.line)") }
    } else if !moot.isEmpty {
      if case .deadLetters(.dataEraser) = topic {
        for event in decided.compactMap(\.event) {
          _ = try await store.discardErasure(
            of: event.id, account: event.account, target: nil, note: "discarded by \(person): the account is erased",
            at: decision.time)
        }
      }
      try await box.discard(moot, of: letters, decision) { letter, _ in
        Terminal.say("closed  \(topic.topic)  \(letter.line)")
      }
    }
    return erased.count - moot.count
  }

  /// What a letter says; nil where it cannot be read, or is quarantined and not believed.
  private func event(in record: ConsumedRecord, _ release: QuarantineRelease?) -> AccountEvent? {
    var value = record.value ?? []
    if let release {
      guard case .publish(let event) = release.judge(record, at: .now) else { return nil }
      value = event.value
    }
    do throws(EventDecodingError) { return try AccountEvent(decoding: value) } catch { return nil }
  }
}
