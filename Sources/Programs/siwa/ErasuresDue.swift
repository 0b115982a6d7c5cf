import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import JSON

/// `siwa erasures due`: what a law wanted kept, and does not any more.
struct ErasuresDue: Command {
  static let name = "erasures due"
  static let summary = "Lists what was retained of erased accounts until today or an earlier day."
  static let details = """
    A line for each, without personal data: the day, the event, the account's keyed hash, the target, the team, the ground,
    and since when it is retained. Nothing erases it by itself. The account is erased, so the store knows its hash alone:
    ask with --team and --sub for each person of whom your own records still hold something. Once it is erased there, close
    it with 'siwa erasures discard'.

    Exit codes: 0 nothing is due, 1 something is, 2 the command line, the configuration or the store has to change first,
    3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa erasures due", "Once a day, with an alarm where it ends with 1."),
    CommandExample("siwa erasures due --team A1B2C3D4E5 --sub -", "The person whose sub stands on the standard input."),
  ]

  /// So many are read at once.
  private static let page = 500

  private let team: TeamID?
  private let subject: String?
  private let isJSON: Bool
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    team = arguments.readIfPresent("--team", "TEAM", .teamID, "With --sub: of this person alone.")
    subject = arguments.readIfPresent(
      "--sub", "SUB", .text(1...255), "The person. With - it is read from the standard input, and no shell keeps it.")
    isJSON = arguments.flag("--json", "Says each as a line of JSON.")
    options = ConfigurationOptions(reading: &arguments)
    if (team == nil) != (subject == nil) { arguments.refuse("--team and --sub go together") }
  }

  func run() async -> ExitCode {
    var account: Account?
    if let team, let subject {
      guard let subject = AppleSubject(subject == "-" ? readLine(strippingNewline: true) ?? "" : subject) else {
        Terminal.complain("siwa: --sub: expected 1 to 255 visible ASCII characters")
        return .misuse
      }
      account = Account(team: team, subject: subject)
    }
    return await StoreAccess.open(options) { [account] store throws(AccountStoreError) in
      var last: OpenErasure.Place?
      repeat {
        let due = try await store.dueErasures(
          until: .now, of: account, after: last, limit: Self.page)
        for step in due { Terminal.say(isJSON ? step.json : step.line) }
        guard let end = due.last?.place, due.count == Self.page else {
          let isNothingDue = last == nil && due.isEmpty
          if isNothingDue, !isJSON { Terminal.say("Nothing is due.") }
          return isNothingDue ? .success : .failure
        }
        last = end
      } while true
    }
  }
}

extension RetainedStep {
  fileprivate var line: String {
    let note = RetentionNote(detail)
    return [
      note.until, place.event.text, account.description, place.target, note.team?.text ?? "-", note.ground,
      time.description,
    ].joined(separator: "  ")
  }

  fileprivate var json: String {
    let note = RetentionNote(detail)
    let value: JSONValue = [
      "until": .string(note.until), "event": .string(place.event.text), "account": .string(account.description),
      "target": .string(place.target), "team": note.team.map { .string($0.text) } ?? .null,
      "ground": .string(note.ground), "since": .string(time.description),
    ]
    return String(decoding: value.bytes, as: UTF8.self)
  }
}
