import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Kafka

/// What the commands about letters have in common: which topic, and on which cluster.
struct LettersAccess {
  /// How long the cluster may take for an answer, or be silent while it hands over all letters.
  private static let patience = Duration.seconds(30)

  let topic: LetterTopic
  let options: ConfigurationOptions

  init(_ room: any LetterRoom.Type, reading arguments: inout CommandArguments) {
    topic = room.readTopic(&arguments)
    options = ConfigurationOptions(reading: &arguments)
  }

  /// Runs `body` with the letters as they are now.
  @Loop
  func run(_ body: @Loop (LetterBox, Letters) async throws(KafkaError) -> ExitCode) async -> ExitCode {
    await options.withKafka { configuration, log throws(KafkaError) in
      let box = LetterBox(configuration, topic, within: Self.patience, log: log)
      return try await body(box, try await box.read())
    }
  }
}

/// Which letters an operator means.
struct LetterSelection {
  private let places: [LetterPlace]
  private let isAll: Bool
  private let account: AccountOption
  private let cause: String?

  init(reading arguments: inout CommandArguments) {
    places = arguments.readAll("--letter", "PLACE", .letterPlace, "A letter as 'list' names it; may be repeated.")
    isAll = arguments.flag("--all", "All letters that wait.")
    account = AccountOption(reading: &arguments, "All letters of an account.")
    cause = arguments.readIfPresent(
      "--cause", "CAUSE", .text(1...100), "With --all or --account: those alone that are there for this cause.")
    if [!places.isEmpty, isAll, account.isGiven].count(where: { $0 }) != 1 {
      arguments.refuse("say one of --letter PLACE, --all and --account TEAM/SUB")
    }
    if cause != nil, !places.isEmpty { arguments.refuse("--cause goes with --all and --account") }
  }

  /// Whether the letters, or their cause, are named one by one.
  var isSpecific: Bool { !places.isEmpty || cause != nil }

  /// The letters, in their order; nil where it makes no sense, which was said then.
  func choose(from letters: Letters, keepingOrder: Bool) -> [Letter]? {
    var account: [UInt8]?
    if self.account.isGiven {
      guard let named = self.account.read() else { return nil }
      account = named.key
    }
    let matches = letters.letters.filter { letter in
      (account == nil || letter.account == account) && (cause == nil || letter.cause == cause)
    }
    if let cause, matches.isEmpty {
      // A cause may be mistyped; that nothing is there for it any more is no failure.
      let causes = Set(letters.letters.compactMap(\.cause)).sorted().joined(separator: ", ")
      Terminal.complain("siwa: no letter waits for '\(cause)'\(causes.isEmpty ? "" : "; those that wait: \(causes)")")
    }
    let (chosen, overtaken, unknown) = letters.select(Set(places.isEmpty ? matches.map(\.place) : places))
    if let place = unknown.min() {
      Terminal.complain("siwa: no letter waits at \(place)")
      return nil
    }
    if keepingOrder, let overtaken {
      Terminal.complain("siwa: \(overtaken.place) is of the same account and comes first: retry or discard it too")
      return nil
    }
    return chosen
  }
}

/// What a person decides, as the command line says it.
struct LetterVerdict {
  private let handling: LetterDecision.Handling
  private let reason: String?
  private let person: String
  let isRehearsal: Bool

  init(_ handling: LetterDecision.Handling, reading arguments: inout CommandArguments) {
    self.handling = handling
    let help = "it is kept, without personal data."
    reason =
      handling == .discarded
      ? arguments.read("--reason", "TEXT", .text(3...1000), "Why nothing follows; \(help)")
      : arguments.readIfPresent("--reason", "TEXT", .text(3...1000), "Why; \(help)")
    person = arguments.readPerson()
    isRehearsal = arguments.flag("--dry-run", "Says what would be done, and changes nothing.")
  }

  var decision: LetterDecision { LetterDecision(handling, because: reason, by: person, at: .now) }

  /// What is to be told of letters that it is about.
  @Loop
  func report(of count: Int) -> LetterReport {
    LetterReport(isRehearsal ? "would be \(handling.rawValue)" : handling.rawValue, of: count)
  }
}

/// Tells what becomes of letters: a line for each on the standard output, and on the standard error what is left, once a
/// second how far it is, and how it ended.
@Loop
final class LetterReport {
  private let word: String
  private let count: Int
  private var (done, left) = (0, 0)
  private var lastProgress = MonotonicTime.now

  init(_ word: String, of count: Int) { (self.word, self.count) = (word, count) }

  /// Takes in what became of the next one.
  func note(_ letter: Letter, _ outcome: LetterOutcome) {
    switch outcome {
    case .done:
      done += 1
      Terminal.say("\(word)  \(letter.line)")
    case .left(let words):
      left += 1
      Terminal.complain("siwa: \(words)")
    }
    let now = MonotonicTime.now
    guard now - lastProgress >= .seconds(1), done + left < count else { return }
    lastProgress = now
    Terminal.complain("\(done + left) of \(count)")
  }

  /// Says how many there were.
  func end() -> ExitCode {
    Terminal.complain("\(word): \(done) of \(count)\(left == 0 ? "" : ", left: \(left)")")
    return left == 0 ? .success : .failure
  }
}

extension SettingType where Value == LetterPlace {
  fileprivate static var letterPlace: SettingType {
    SettingType(
      "place", expected: "a partition and an offset, such as 0/17", standIn: LetterPlace(partition: 0, offset: 0),
      show: \.description, parse: { LetterPlace($0) })
  }
}
