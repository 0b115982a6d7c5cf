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
    'begun' is being worked on at the moment, or was when a process ended. siwa-data-eraser goes on with what has failed by
    itself; where it has put the event aside, a person has to decide: see 'siwa dead-letters --consumer data-eraser'.

    Exit codes: 0 nothing is open, 1 something is, 2 the command line, the configuration or the store has to change
    first, 3 the store cannot be reached at the moment.

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
      repeat {
        let open = try await store.openErasures(by: .dataEraser, after: last, limit: Self.page)
        for erasure in open { Terminal.say(isJSON ? erasure.json : erasure.line) }
        guard let end = open.last?.place, open.count == Self.page else {
          let isNothingOpen = last == nil && open.isEmpty
          if isNothingOpen, !isJSON { Terminal.say("Nothing is open.") }
          return isNothingOpen ? .success : .failure
        }
        last = end
      } while true
    }
  }
}

extension OpenErasure {
  fileprivate var line: String {
    [
      since.description, place.event.text, account.description, place.target, state.rawValue,
      cause.isEmpty ? "-" : cause, String(attempts),
    ].joined(separator: "  ")
  }

  fileprivate var json: String {
    let value: JSONValue = [
      "since": .string(since.description), "event": .string(place.event.text),
      "account": .string(account.description), "target": .string(place.target), "state": .string(state.rawValue),
      "cause": cause.isEmpty ? .null : .string(cause), "attempts": .integer(Int64(attempts)),
    ]
    return String(decoding: value.bytes, as: UTF8.self)
  }
}
