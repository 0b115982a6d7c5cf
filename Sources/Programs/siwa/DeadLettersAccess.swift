import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import JSON
import Kafka

/// What the commands about dead letters have in common: whose letters, on which cluster, and which of them.
struct DeadLettersAccess {
  /// How long the cluster may take to hand over all letters, or to take something.
  private static let patience = Duration.seconds(30)

  let consumer: ConsumerName
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    consumer = arguments.read("--consumer", "NAME", .consumerName, "Whose letters: such as token-revoker.")
    options = ConfigurationOptions(reading: &arguments)
  }

  /// Runs `body` with the letters as they are now.
  @Loop
  func run(_ body: @Loop (DeadLetterBox, DeadLetters) async throws(KafkaError) -> ExitCode) async -> ExitCode {
    await options.withKafka { configuration, log throws(KafkaError) in
      let box = DeadLetterBox(configuration, of: consumer, within: Self.patience, log: log)
      return try await body(box, try await box.read())
    }
  }

  /// Runs `body` with the account store.
  @Loop
  func withStore(_ body: @Loop (any AccountStore) async throws(AccountStoreError) -> ExitCode) async -> ExitCode {
    await StoreAccess.open(options, body)
  }
}

/// Which letters an operator means.
struct LetterSelection {
  private let places: [LetterPlace]
  private let isAll: Bool
  private let cause: String?

  init(reading arguments: inout CommandArguments) {
    places = arguments.readAll("--letter", "PLACE", .letterPlace, "A letter as 'list' names it; may be repeated.")
    isAll = arguments.flag("--all", "All letters that wait.")
    cause = arguments.readIfPresent("--cause", "CAUSE", .text(1...100), "With --all: those alone that have this cause.")
    if places.isEmpty != isAll { arguments.refuse("say --letter PLACE or --all, and not both") }
    if cause != nil, !isAll { arguments.refuse("--cause goes with --all") }
  }

  /// The letters, in their order; nil where it makes no sense, which was said then.
  func choose(from letters: DeadLetters, keepingOrder: Bool) -> [DeadLetters.Letter]? {
    let all = letters.letters.filter { cause == nil || $0[DeadLetter.Header.cause] == cause }
    let (chosen, overtaken, unknown) = letters.select(isAll ? Set(all.map(\.place)) : Set(places))
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

extension SettingType where Value == LetterPlace {
  fileprivate static var letterPlace: SettingType {
    SettingType(
      "place", expected: "a partition and an offset, such as 0/17", standIn: LetterPlace(partition: 0, offset: 0),
      show: \.description, parse: { LetterPlace($0) })
  }
}

extension DeadLetters.Letter {
  private static let columns = [
    ("time", DeadLetter.Header.time), ("cause", DeadLetter.Header.cause), ("attempts", DeadLetter.Header.attempts),
    ("type", "ce_type"), ("event", "ce_id"),
  ]

  private var placeOfRecord: String { origin.map { String(printable: $0.description) } ?? "?" }
  private var marks: [(name: String, isSet: Bool)] {
    [("given-up", self[DeadLetter.Header.givenUp] != nil), ("truncated", isShortened)]
  }

  private func printable(_ header: String) -> String? { self[header].map { String(printable: $0) } }

  /// A line without personal data.
  var line: String {
    ([place.description] + Self.columns.map { printable($0.1) ?? "?" } + [placeOfRecord]
      + marks.filter(\.isSet).map(\.name)).joined(separator: "  ")
  }

  /// The same for programs.
  var json: JSONValue {
    .object(
      [.init("letter", .string(place.description))]
        + Self.columns.map { JSONValue.Member($0.0, printable($0.1).map { .string($0) } ?? .null) }
        + [.init("origin", .string(placeOfRecord))] + marks.map { JSONValue.Member($0.name, .boolean($0.isSet)) })
  }
}
