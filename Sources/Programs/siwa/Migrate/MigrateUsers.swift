import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Glibc

/// `siwa migrate users`: who is to be handed over.
struct MigrateUsers: Command {
  static let name = "migrate users"
  static let summary = "Adds the users who are to be handed over: all accounts of the team, or those that you bring."
  static let details = """
    Without --from-input, all accounts of the team in the account store, each under its account id: those who never used the
    app that is transferred, too, where the team has others. The store does not know who they are: it keeps an app with each
    token, and who signs in without a code, or whose tokens have ended, has none. Apple refuses them (consent-withdrawn);
    after each hundred in a row it is asked about somebody of whom it has said something before, and where it has of nobody,
    the batch stops. So where you know who uses which app, bring those who use this one. With --from-input, JSON Lines
    from the standard input:
      {"key":"4711","sub":"000768.6166f031167141e6.1521"}
      key  what your own database knows the user by: the recipient gets it. No sub, no address
      sub  the person, as Apple names them to our team
    Who is there already stays as they are; so whoever signs up later is added by the same command again. A line that is no
    user is named with the reason, and nothing of the lines is repeated; those before and behind it are added. A line that
    names somebody by another key than the plan has, or by a key under which it has somebody else, is not added: such lines
    are counted, and the first 20 named. Bring those of the second kind again, under their own keys.

    Exit codes: 0 all are there; 1 some lines are no users, name somebody by a second key, or two people by one; 2 the
    command line, the configuration or the store has to change first; 3 the store cannot be reached at the moment.

    """
  static let examples = [
    CommandExample("siwa migrate users summer", "All accounts of the team in the store."),
    CommandExample(
      "psql -At -c \"SELECT json_build_object('key', id::text, 'sub', apple_sub) FROM users\" | siwa migrate users summer "
        + "--from-input", "From your own database: no file to destroy."),
  ]

  /// So many are added at once.
  private static let page = 512

  /// What came of it.
  private struct Added {
    var new: Int64 = 0
    /// Lines that are no users.
    var refused: Int64 = 0
    var faults = KeyFaults()
  }

  private let plan: String
  private let isFromInput: Bool
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    plan = arguments.readPlan()
    isFromInput = arguments.flag("--from-input", "Reads the users from the standard input, as JSON Lines.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    guard let teams = MigrateAccess.teams(options) else { return .misuse }
    return await MigrateAccess.open(options, plan, .sending) { store, plan in
      let bar = ProgressBar("users")
      var added = Added()
      if isFromInput {
        added = try await addInput(to: plan, store, bar)
      } else {
        added.new = try await addAccounts(to: plan, store, bar)
      }
      bar.clear()
      MigrateAccess.complain(of: added.faults)
      let census = try await store.census(of: plan)
      Terminal.say("New        \(added.new)")
      if isFromInput {
        let faults = added.faults
        Terminal.say("No users   \(added.refused)\nTwo keys   \(faults.second)\nTwo people \(faults.shared)")
      } else {
        Self.tellOfOtherApps(than: plan, teams)
      }
      Terminal.say(census.lines(of: plan).joined(separator: "\n"))
      Terminal.say("60 days    \(TransferWindow(plan).words(at: .now))")
      return added.refused == 0 && added.faults.count == 0 ? .success : .failure
    }
  }

  /// Says that not everybody who was added uses the app, where the team has others.
  private static func tellOfOtherApps(than plan: TransferPlan, _ teams: TeamsSettings) {
    let others = teams.teams.filter { $0.value == plan.team && $0.key != plan.client }.keys.map(\.text).sorted()
    if others.isEmpty { return }
    let more = others.count > 3 ? " and \(others.count - 3) more" : ""
    Terminal.complain(
      "siwa: \(plan.team) has other apps, too (\(others.prefix(3).joined(separator: ", "))\(more)), and the store does not know "
        + "who of its accounts uses \(plan.client): all were added, and Apple refuses those who do not. See --help")
  }

  @Loop
  private func addAccounts(
    to plan: TransferPlan, _ store: any TransferStore, _ bar: ProgressBar
  ) async throws -> Int64 {
    var (new, place) = (Int64(0), nil as AccountID?)
    repeat {
      let page = try await store.addAccounts(to: plan, after: place, limit: Self.page)
      new += Int64(page.new)
      place = page.place
      bar.note(done: new, of: nil)
    } while place != nil
    return new
  }

  @Loop
  private func addInput(
    to plan: TransferPlan, _ store: any TransferStore, _ bar: ProgressBar
  ) async throws -> Added {
    if isatty(STDIN_FILENO) == 1 { Terminal.complain("siwa: reads users from the standard input; see --help") }
    let input = StandardInput(longestLine: TransferLine.longest)
    var (refused, number) = (Int64(0), Int64(0))
    var intake = TransferIntake(into: plan, in: store)
    do {
      while let lines = try await input.next(Self.page) {
        var users: [(line: Int64, user: NewTransferUser)] = []
        for line in lines {
          number += 1
          do throws(TransferLine.Fault) { users.append((number, try TransferLine.brought(line))) } catch {
            refused += 1
            bar.clear()
            Terminal.complain("siwa: line \(number): \(error)")
          }
        }
        try await intake.add(users)
        bar.note(done: number, of: nil)
      }
    } catch let fault as LineReader.Fault {
      bar.clear()
      throw MigrateAccess.Refusal("line \(input.count + 1): \(fault.words(limit: TransferLine.longest))")
    }
    return Added(new: intake.new, refused: refused, faults: intake.faults)
  }
}
