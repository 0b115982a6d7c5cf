import AccountEvents
import AccountServices
import AccountStore
import AppleID
import Configuration
import EventLoop

/// `siwa migrate prepare`: the plan of one side of a transfer.
struct MigratePrepare: Command {
  static let name = "migrate prepare"
  static let summary = "Makes the plan of a transfer of users to another team, or shows it, and says what is in order."
  static let details = """
    A plan is one side of the transfer of one app: NAME is yours to choose. It is kept in the account store, and everything
    else goes by its name; with the name alone it is shown again. --accepted, or later siwa migrate accept, says when the
    recipient has accepted the transfer: from then on there are 60 days, for both teams.

    A line for each thing that has to be in order: ok, or what to do. Whether the key is, Apple is asked, in the name of the app:
    the receiving team can only once the transfer is accepted.

    Exit codes: 0 all is in order; 1 something is not, which is said; 2 the command line, the configuration or the store has
    to change first; 3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample(
      "siwa migrate prepare summer --sending --team A1B2C3D4E5 --other-team F6G7H8J9K0 --client com.example.app",
      "We hand com.example.app over to F6G7H8J9K0."),
    CommandExample(
      "siwa migrate prepare spring --receiving --team F6G7H8J9K0 --other-team A1B2C3D4E5 --client com.example.app "
        + "--accepted 2026-05-03T10:00:00Z", "We get it, and have accepted it."),
    CommandExample("siwa migrate prepare summer", "How it stands with the plan."),
  ]

  private let plan: String
  private let side: TransferPlan.Side?
  private let team: TeamID?
  private let otherTeam: TeamID?
  private let client: ClientID?
  private let acceptedAt: Timestamp?
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    plan = arguments.readPlan()
    let isSending = arguments.flag("--sending", "We are the team that has had the app.")
    let isReceiving = arguments.flag("--receiving", "We are the team that gets the app.")
    team = arguments.readIfPresent("--team", "TEAM", .teamID, "Our team.")
    otherTeam = arguments.readIfPresent("--other-team", "TEAM", .teamID, "The other one.")
    client = arguments.readIfPresent("--client", "ID", .appID, "The App ID or Services ID that users signed in to.")
    acceptedAt = arguments.readIfPresent("--accepted", "DATE", .moment, "When the recipient accepted the transfer.")
    options = ConfigurationOptions(reading: &arguments)
    side = isSending ? .sending : isReceiving ? .receiving : nil
    if isSending, isReceiving { arguments.refuse("say one of --sending and --receiving") }
    let given = [side != nil, team != nil, otherTeam != nil, client != nil]
    if given.contains(true), given.contains(false) {
      arguments.refuse("a new plan needs --sending or --receiving, --team, --other-team and --client")
    }
    if team != nil, team == otherTeam {
      arguments.refuse(
        "--other-team is our own team: Apple would take it, and answer with identifiers that are of no use to anybody")
    }
  }

  func run() async -> ExitCode {
    guard let configuration = MigrateAccess.configuration(options) else { return .misuse }
    return await MigrateAccess.open(options) { store in
      let found = try await find(in: store)
      let census = try await store.census(of: found)
      let window = TransferWindow(found)
      Terminal.say("Plan       \(found.words)")
      let isReady = await say(found, configuration)
      Terminal.say("Store      ok")
      Terminal.say("60 days    \(window.words(at: .now))")
      Terminal.say(census.lines(of: found).joined(separator: "\n"))
      Terminal.say("Trial      \(found.triedAt.map { "passed \($0)" } ?? "the first user is tried before all others")")
      Terminal.say("Next       \(Self.next(found, census, window.state(at: .now)))")
      return isReady && window.state(at: .now) != .closed ? .success : .failure
    }
  }

  @Loop
  private func find(in store: any TransferStore) async throws -> TransferPlan {
    guard let side, let team, let otherTeam, let client else {
      var plan = try await MigrateAccess.plan(plan, nil, in: store)
      if let acceptedAt { plan = try await MigrateAccept.note(acceptedAt, in: plan, store) }
      return plan
    }
    guard
      let new = TransferPlan(
        plan, side, team: team, otherTeam: otherTeam, client: client, createdAt: .now, acceptedAt: acceptedAt)
    else { throw MigrateAccess.Refusal("\(plan): not the name of a plan") }
    let plans = try await store.transferPlans()
    if let rival = plans.first(where: { $0.isRival(of: new) }), !plans.contains(where: { $0.name == plan }) {
      throw MigrateAccess.Refusal(
        "the plan \(rival.name) is of the same transfer: a second one could lead two keys to one account. Go on with "
          + "\(rival.name), or remove it first")
    }
    guard var known = try await store.add(new) else { return new }
    if known.isBeingRemoved { throw MigrateAccess.Refusal("there is a plan of that name, \(known.removal)") }
    guard known.side == side, known.team == team, known.otherTeam == otherTeam, known.client == client else {
      throw MigrateAccess.Refusal("there is another plan of that name: \(known.words)")
    }
    if let acceptedAt { known = try await MigrateAccept.note(acceptedAt, in: known, store) }
    return known
  }

  /// Says how it stands with key and app.
  @Loop
  private func say(_ plan: TransferPlan, _ configuration: MigrationConfiguration) async -> Bool {
    let (team, teams) = (plan.team, configuration.teams)
    let hasKey = await sayKey(of: plan, configuration)
    switch teams.teams[plan.client] {
    case team: Terminal.say("Client     ok: \(plan.client) is one of teams.\(team).audiences")
    case nil where plan.side == .receiving && TransferWindow(plan).state(at: .now) != .open:
      Terminal.say("Client     to come: add \(plan.client) to teams.\(team).audiences when the transfer is accepted")
    case nil:
      Terminal.say("Client     unknown: add \(plan.client) to teams.\(team).audiences")
      return false
    case let other?:
      Terminal.say(
        "Client     \(plan.client) is one of teams.\(other).audiences"
          + (plan.side == .receiving ? ": move it to teams.\(team) when the transfer is accepted" : ""))
      guard other == plan.otherTeam else { return false }
    }
    if teams.keys[plan.otherTeam] != nil {
      Terminal.say("Way back   the key of \(plan.otherTeam) is configured, too: one user is tried there and back")
    } else if plan.side == .sending {
      Terminal.say("Way back   the first exchange of \(plan.otherTeam): hand over a few users before all of them")
    }
    return hasKey
  }

  /// Says how it stands with the key: what Apple says of it, where it can be asked.
  @Loop
  private func sayKey(of plan: TransferPlan, _ configuration: MigrationConfiguration) async -> Bool {
    let team = plan.team
    guard configuration.teams.keys[team] != nil else {
      Terminal.say("Key        missing: set teams.\(team).key-id and teams.\(team).private-key")
      return false
    }
    let keys = "\(configuration.keys(of: team).map(\.text).joined(separator: ", ")) of team \(team)"
    let state = TransferWindow(plan).state(at: .now)
    guard state == .open || plan.side == .sending && state != .closed else {
      let reason = state == .closed ? "the 60 days are over" : "the transfer is not accepted yet"
      Terminal.say("Key        ok: \(keys) is configured; Apple was not asked, as \(reason)")
      return true
    }
    do throws(AppleTokenError) {
      try await configuration.tryKey(of: plan, userAgent: "siwa", now: { .now })
    } catch {
      if let words = error.words(of: plan, in: team, keys: configuration.keys(of:)) {
        Terminal.say("Key        \(words)")
        return false
      }
      let what = error.code == .unreachable ? "was not asked" : "does not say"
      Terminal.say("Key        ok: \(keys) is configured; Apple \(what): \(error)")
      return true
    }
    Terminal.say("Key        ok: Apple takes \(keys)")
    return true
  }

  private static func next(
    _ plan: TransferPlan, _ census: TransferCensus, _ state: TransferWindow.State
  ) -> String {
    let command = "siwa migrate"
    if state == .closed { return "nothing more can be done" }
    switch plan.side {
    case .sending:
      if census.users == 0 { return "\(command) users \(plan.name)" }
      return census.waiting > 0 ? "\(command) generate \(plan.name)" : "\(command) export \(plan.name) DIRECTORY"
    case .receiving:
      if census.users == 0 { return "\(command) import \(plan.name) DIRECTORY --signer VKEY" }
      if state != .open { return "\(command) accept \(plan.name) DATE, as soon as the transfer is accepted" }
      return census.waiting > 0 ? "\(command) exchange \(plan.name)" : "\(command) results \(plan.name) FILE"
    }
  }
}

extension SettingType where Value == ClientID {
  fileprivate static var appID: SettingType {
    guard let sample = ClientID("com.example.app") else { preconditionFailure("the sample is well-formed") }
    return SettingType(
      "App ID or Services ID", expected: "an App ID or Services ID, such as com.example.app", standIn: sample,
      show: \.text, parse: { ClientID($0) })
  }
}
