import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop

/// `siwa migrate decide`: what a person says of two who came to one account.
struct MigrateDecide: Command {
  static let name = "migrate decide"
  static let summary =
    "Lists the conflicts of a plan, or notes what was decided about one: whose the account is, by whom, why."
  static let details = """
    Two users who come to one account are never merged: the first has it, and the second is a conflict (same-account). So is
    one whose account had come as somebody else (other-account). With the plan's name alone, a line for each: its number, the
    reason, the key, the key that has the account in this plan, and what was decided.

    With a number, one of --keep-old, --keep-new and --separate, --by and --reason, the decision is noted, in the place of what
    was decided before. It changes no account: it stands in siwa migrate status, and in siwa migrate results, where your own
    database finds it. Of the keys of one account one has it at most. The note is sealed with the user, and gone with them or
    with the plan.

    Exit codes: 0 noted, or nothing is left to decide; 1 conflicts without a decision, or none of that number; 2 the command
    line, the configuration or the store has to change first; 3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa migrate decide spring", "Which conflicts there are."),
    CommandExample(
      "siwa migrate decide spring 17 --keep-new --by support --reason 'they have shown that the older one is not theirs'",
      "The account is the one of user 17."),
  ]

  private let plan: String
  private let number: Int?
  private let choice: TransferDecision.Choice?
  private let person: String?
  private let reason: String?
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    plan = arguments.readPlan()
    number = arguments.readIfPresent(
      "NUMBER", .integer(1...1_000_000_000_000), "The conflict, by its number; without it, all are listed.")
    let flags: [(choice: TransferDecision.Choice, isGiven: Bool)] = [
      (.keepOld, arguments.flag("--keep-old", "The account stays with the key that came to it first.")),
      (.keepNew, arguments.flag("--keep-new", "The account is the one of the key in conflict.")),
      (.separate, arguments.flag("--separate", "The key in conflict gets an account of its own, which is given anew.")),
    ]
    person = arguments.readIfPresent(
      "--by", "NAME", .text(1...100), "Who decides it: a role, or a name that may be kept.")
    reason = arguments.readIfPresent("--reason", "TEXT", .text(3...1000), "Why, without personal data.")
    options = ConfigurationOptions(reading: &arguments)
    let chosen = flags.filter(\.isGiven).map(\.choice)
    choice = chosen.first
    let isWhole = chosen.count == 1 && person != nil && reason != nil
    let isNone = chosen.isEmpty && person == nil && reason == nil
    if number == nil ? !isNone : !isWhole {
      arguments.refuse(
        "a decision needs NUMBER, one of --keep-old, --keep-new and --separate, --by and --reason; a list none of them")
    }
  }

  func run() async -> ExitCode {
    await MigrateAccess.open(options, plan, .receiving) { store, plan in
      let conflicts = try await MigrateConflicts.all(of: plan, store)
      guard let number, let choice, let person, let reason else {
        return try await MigrateConflicts.list(conflicts, of: plan, store)
      }
      guard let user = conflicts.first(where: { $0.number == Int64(number) }) else {
        throw MigrateAccess.Refusal("no conflict has the number \(number): siwa migrate decide \(plan.name)", .failure)
      }
      let rival = conflicts.first { $0.number != user.number && $0.isGivenAccount && $0.subject == user.subject }
      if choice == .keepNew, let rival {
        throw MigrateAccess.Refusal(
          "the account is the one of user \(rival.number) already, by a decision: decide about that one first")
      }
      let decision = TransferDecision(choice, by: person, because: reason, at: .now)
      guard try await store.note(decision, of: user.number, in: plan) != nil else {
        throw MigrateAccess.Refusal("user \(number) is in no conflict any more", .failure)
      }
      Terminal.say("Decided    \(number)  \(user.key)  \(decision.words)")
      Terminal.say("60 days    \(TransferWindow(plan).words(at: .now))")
      return .success
    }
  }
}

/// The conflicts of a plan: they are few, or something else is wrong.
enum MigrateConflicts {
  private static let page = 512

  /// All of them, those that are decided included.
  @Loop
  static func all(of plan: TransferPlan, _ store: any TransferStore) async throws -> [TransferUser] {
    var (all, last) = ([TransferUser](), Int64(0))
    while true {
      let page = try await store.transferUsers(of: plan, in: .conflict, after: last, limit: Self.page)
      guard let end = page.last else { return all }
      last = end.number
      all += page
    }
  }

  /// A line for each, with the key that has the account in this plan, for which all users are looked at.
  @Loop
  static func list(
    _ conflicts: [TransferUser], of plan: TransferPlan, _ store: any TransferStore
  ) async throws -> ExitCode {
    let accounts = Set(conflicts.compactMap(\.subject))
    var (owners, last): ([AppleSubject: String], Int64) = ([:], 0)
    while !accounts.isEmpty {
      let page = try await store.transferUsers(of: plan, in: .done, after: last, limit: Self.page)
      guard let end = page.last else { break }
      last = end.number
      for user in page {
        if let subject = user.subject, accounts.contains(subject) { owners[subject] = user.key }
      }
    }
    for user in conflicts {
      let owner = user.subject.flatMap { owners[$0] }.map { "  account of \($0)" } ?? ""
      let decision = user.decision.map { "  \($0.words)" } ?? ""
      Terminal.say("\(user.number)  \(user.reason?.rawValue ?? "")  \(user.key)\(owner)\(decision)")
    }
    if conflicts.isEmpty { Terminal.say("There is no conflict.") }
    Terminal.say("60 days    \(TransferWindow(plan).words(at: .now))")
    return conflicts.allSatisfy { $0.decision != nil } ? .success : .failure
  }
}

extension TransferUser {
  /// Whether somebody has decided that the account is theirs, though another one came to it first.
  var isGivenAccount: Bool { state == .conflict && decision?.choice == .keepNew }
}

extension TransferDecision {
  /// For an operator.
  var words: String { "\(choice.rawValue) by \(person), \(time): \(reason)" }
}
