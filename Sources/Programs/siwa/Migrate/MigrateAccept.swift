import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop

/// `siwa migrate accept`: from when on the 60 days count.
struct MigrateAccept: Command {
  static let name = "migrate accept"
  static let summary = "Notes when the transfer was accepted: from then on both teams have 60 days."
  static let details = """
    Apple tells nobody by machine when the recipient has accepted the transfer; both teams see it in App Store Connect. Said
    again, the new moment takes the place of the old one. Before it only identifiers can be generated; afterwards they can be
    exchanged, too, until the 60 days are over.

    Exit codes: 0 noted, 2 the command line, the configuration or the store has to change first, 3 the store cannot be reached
    at the moment.

    """
  static let examples = [
    CommandExample("siwa migrate accept summer 2026-05-03T10:00:00Z", "Accepted on 3 May, at ten.")
  ]

  private let plan: String
  private let time: Timestamp
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    plan = arguments.readPlan()
    time = arguments.read("DATE", .moment, "When it was accepted: a time, or a day in UTC.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    await MigrateAccess.open(options, plan) { store, plan in
      let plan = try await Self.note(time, in: plan, store)
      Terminal.say("60 days    \(TransferWindow(plan).words(at: .now))")
      return .success
    }
  }

  /// Notes it, and returns the plan as it is then.
  @Loop
  static func note(_ time: Timestamp, in plan: TransferPlan, _ store: any TransferStore) async throws -> TransferPlan {
    var plan = plan
    plan.acceptedAt = time
    guard try await store.update(plan) else {
      throw MigrateAccess.Refusal("the plan \(plan.name) was removed meanwhile")
    }
    return plan
  }
}
