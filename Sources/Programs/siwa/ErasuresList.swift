import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import JSON

/// `siwa erasures list`: which erasures are not at their end.
struct ErasuresList: Command {
  static let name = "erasures list"
  static let summary = "Lists the erasures that have begun and are not at their end, target by target."
  static let details = """
    A line for each target that may still hold something of a person, without personal data: since when, the event, the
    account's keyed hash, the target, how far it is, why it has failed last, and how many attempts at the event have failed.
    'begun' is being worked on at the moment, or was when a process ended; 'in-progress' is a service at work, by its own
    words. siwa-data-eraser goes on with what has failed by itself. Where it has put the event aside, an operator has to
    decide: see 'siwa dead-letters list --consumer data-eraser'; so too of a target that the policy does not name any
    more ('undeclared'): declare it again, or see 'siwa erasures discard'.

    Exit codes: 0 nothing is open but what services are at work on, 1 something is, 2 the command line, the configuration
    or the store has to change first, 3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa erasures list", "Whenever siwa_erasures_incomplete stays above 0."),
    CommandExample("siwa erasures list --json", "For another program: a line of JSON for each."),
  ]

  /// So many are read at once.
  private static let page = 500

  private let isJSON: Bool
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    isJSON = arguments.flag("--json", "Says each as a line of JSON.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    await StoreAccess.open(options) { store throws(AccountStoreError) in
      var last: OpenErasure.Place?
      var isAllInProgress = true
      repeat {
        let open = try await store.openErasures(by: .dataEraser, after: last, limit: Self.page)
        for erasure in open { Terminal.say(isJSON ? erasure.json : erasure.line) }
        isAllInProgress = isAllInProgress && open.allSatisfy(\.isInProgress)
        guard let end = open.last?.place, open.count == Self.page else {
          if last == nil, open.isEmpty, !isJSON { Terminal.say("Nothing is open.") }
          return isAllInProgress ? .success : .failure
        }
        last = end
      } while true
    }
  }
}

extension OpenErasure {
  fileprivate var isInProgress: Bool { state == .begun && cause == ErasureStep.inProgress }
  private var stateInWords: String { isInProgress ? cause : state.rawValue }
  private var causeInWords: String? { isInProgress || cause.isEmpty ? nil : cause }

  fileprivate var line: String {
    [
      since.description, place.event.text, account.description, place.target, stateInWords,
      causeInWords ?? "-", String(attempts),
    ].joined(separator: "  ")
  }

  fileprivate var json: String {
    let value: JSONValue = [
      "since": .string(since.description), "event": .string(place.event.text),
      "account": .string(account.description), "target": .string(place.target), "state": .string(stateInWords),
      "cause": causeInWords.map { .string($0) } ?? .null, "attempts": .integer(Int64(attempts)),
    ]
    return String(decoding: value.bytes, as: UTF8.self)
  }
}
