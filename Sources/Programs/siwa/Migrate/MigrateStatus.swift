import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import JSON

/// `siwa migrate status`: how far plans are.
struct MigrateStatus: Command {
  static let name = "migrate status"
  static let summary = "Says how far a plan is, or all of them, and what is left of the 60 days."
  static let details = """
    With --refused the key of each user follows of whom nothing comes, and why: consent-withdrawn, useless-answer, damaged; and
    of each whose account a person has to look at: same-account (another user came to the same account), other-account (the
    account had come as somebody else), and what siwa migrate decide has noted. Write to them, or let them sign in anew.

    Of a plan whose removal was broken off, it says how many of its users are left to remove, and who ends it: siwa migrate
    remove. Nothing else is known of it.

    Exit codes: 0 every user has a result; 1 some wait, were refused or are in a conflict that nobody has decided, or a plan
    is being removed; 2 the command line, the configuration or the store has to change first; 3 the store cannot be reached
    at the moment.

    """
  static let examples = [
    CommandExample("siwa migrate status", "All plans."),
    CommandExample("siwa migrate status summer --refused", "Of whom nothing comes, by your own keys."),
    CommandExample("siwa migrate status summer --json", "For another program: a line of JSON for each plan."),
  ]

  private static let page = 512

  private let plan: String?
  private let showsRefused: Bool
  private let isJSON: Bool
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    plan = arguments.readIfPresent("NAME", .planName, "The plan; all of them without it.")
    showsRefused = arguments.flag("--refused", "Lists the keys of whom nothing comes, and why.")
    isJSON = arguments.flag("--json", "Says each as a line of JSON.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    await MigrateAccess.open(options) { store in
      let plans: [TransferPlan]
      if let plan {
        plans = [try await MigrateAccess.anyPlan(plan, in: store)]
      } else {
        plans = try await store.transferPlans()
      }
      if plans.isEmpty, !isJSON { Terminal.say("There is no plan.") }
      var exit = ExitCode.success
      for plan in plans {
        let census = try await store.census(of: plan)
        if plan.isBeingRemoved {
          exit = .failure
          Terminal.say(isJSON ? Self.json(plan, census, 0) : Self.removal(of: plan, census))
          continue
        }
        var decided = 0
        if census.allConflicts > 0 {
          decided = try await MigrateConflicts.all(of: plan, store).count(where: { $0.decision != nil })
        }
        if census.exitCode(decided: Int64(decided)) != .success { exit = .failure }
        Terminal.say(isJSON ? Self.json(plan, census, decided) : Self.text(plan, census, decided))
        if showsRefused { try await list(plan, store) }
      }
      return exit
    }
  }

  private static func text(_ plan: TransferPlan, _ census: TransferCensus, _ decided: Int) -> String {
    let trial = plan.triedAt.map { "passed \($0)" } ?? "not yet"
    return
      ([
        "Plan       \(plan.words)", "60 days    \(TransferWindow(plan).words(at: .now))", "Trial      \(trial)",
      ] + census.lines(of: plan) + (census.allConflicts > 0 ? ["Decided    \(decided)"] : [])).joined(separator: "\n")
  }

  private static func removal(of plan: TransferPlan, _ census: TransferCensus) -> String {
    "Plan       \(plan.words)\nRemoval    \(plan.removal)\nLeft       \(census.users)"
  }

  private static func json(_ plan: TransferPlan, _ census: TransferCensus, _ decided: Int) -> String {
    func counts(_ counts: [TransferRefusal: Int64]) -> JSONValue {
      .object(
        TransferRefusal.allCases.compactMap { reason in
          counts[reason].map { JSONValue.Member(reason.rawValue, .integer($0)) }
        })
    }
    let value: JSONValue = [
      "plan": .string(plan.name), "side": .string(plan.side.rawValue), "team": .string(plan.team.text),
      "other_team": .string(plan.otherTeam.text), "client": .string(plan.client.text),
      "accepted": plan.acceptedAt.map { .string($0.description) } ?? .null,
      "closes": plan.closesAt.map { .string($0.description) } ?? .null,
      "seconds_left": TransferWindow(plan).left(at: .now).map { .integer($0.components.seconds) } ?? .null,
      "tried": plan.triedAt.map { .string($0.description) } ?? .null, "users": .integer(census.users),
      "waiting": .integer(census.waiting), "done": .integer(census.done), "refused": counts(census.refused),
      "conflicts": counts(census.conflicts), "decided": .integer(Int64(decided)),
      "signed_in": .integer(census.signedIn), "being_removed": .boolean(plan.isBeingRemoved),
    ]
    return String(decoding: value.bytes, as: UTF8.self)
  }

  @Loop
  private func list(_ plan: TransferPlan, _ store: any TransferStore) async throws {
    for state in [TransferUser.State.refused, .conflict] {
      var last: Int64 = 0
      while true {
        let users = try await store.transferUsers(of: plan, in: state, after: last, limit: Self.page)
        guard let end = users.last else { break }
        last = end.number
        for user in users {
          let reason = user.reason?.rawValue ?? state.rawValue
          let json: JSONValue = [
            "key": .string(user.key), "state": .string(state.rawValue), "reason": .string(reason),
            "decision": user.decision.map { .string($0.choice.rawValue) } ?? .null,
          ]
          let decision = user.decision.map { "  \($0.words)" } ?? ""
          Terminal.say(isJSON ? String(decoding: json.bytes, as: UTF8.self) : "  \(reason)  \(user.key)\(decision)")
        }
      }
    }
  }
}

/// `siwa migrate remove`: a plan that is over.
struct MigrateRemove: Command {
  static let name = "migrate remove"
  static let summary = "Removes a plan with all that is kept of its users; their accounts stay as they are."
  static let details = """
    What identifies people in a plan is needed no longer than for the transfer: remove it when the 60 days are over, or all
    of it is in your database. Its key is shredded first, so that nothing of it can be read in the store any more; then its
    users go, some thousand at a time. Broken off, the same command ends it.

    Exit codes: 0 removed; 2 the command line, the configuration or the store has to change first; 3 the store cannot be
    reached at the moment.

    """
  static let examples = [CommandExample("siwa migrate remove summer --yes", "When everything is over.")]

  private let plan: String
  private let isMeant: Bool
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    plan = arguments.readPlan()
    isMeant = arguments.flag("--yes", "Removes it; without it, only says what would be removed.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    await MigrateAccess.open(options) { store in
      let plan = try await MigrateAccess.anyPlan(plan, in: store)
      Terminal.say("Plan       \(plan.words)\n60 days    \(TransferWindow(plan).words(at: .now))")
      let census = try await store.census(of: plan)
      Terminal.say(
        plan.isBeingRemoved ? "Left       \(census.users)" : census.lines(of: plan).joined(separator: "\n"))
      guard isMeant else {
        Terminal.say("Nothing was removed: say --yes")
        return .misuse
      }
      guard try await store.removePlan(plan.name) else {
        throw MigrateAccess.Refusal("the plan \(plan.name) was removed meanwhile")
      }
      Terminal.say("Removed")
      return .success
    }
  }
}
