import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop

/// `siwa migrate rehearse`: a whole transfer, before there is one.
struct MigrateRehearse: Command {
  static let name = "migrate rehearse"
  static let summary = "Plays a whole transfer of made-up users against a simulated Apple, and prints a timetable."
  static let details = """
    Both teams are played, each with a store of its own that is gone afterwards: users, identifiers, hand-over with a signed
    manifest, exchange. One user in a hundred has withdrawn consent. With --faults Apple throttles and fails on the way.
    Nothing leaves this machine, and nothing is read of the configuration. In the end every made-up user has exactly one
    account at the other team, or stands on the list of refusals; that is checked, and said.

    Played are --play users; the timetable reckons how long each side takes for --users at --requests a second: the simulated
    Apple takes 50 ms for an answer, and so --concurrency at once are at most 20 times as many a second.

    Exit codes: 0 all went well, 1 it did not, which is said, 2 the command line makes no sense.

    """
  static let examples = [
    CommandExample("siwa migrate rehearse --users 50000 --requests 50", "How long for 50,000 users; 500 are played."),
    CommandExample("siwa migrate rehearse --faults", "What is to be seen when Apple throttles and fails."),
  ]

  private let users: Int
  private let played: Int
  private let rate: Int
  private let concurrency: Int
  private let hasFaults: Bool

  init(reading arguments: inout CommandArguments) {
    users = arguments.read(
      "--users", "NUMBER", .integer(1...100_000_000, unit: "users"), default: 50_000,
      "How many users you have: for the timetable.")
    played = arguments.read(
      "--play", "NUMBER", .integer(1...1_000_000, unit: "users"), default: 500, "How many made-up users take part.")
    rate = arguments.read(
      "--requests", "NUMBER", .integer(1...10_000, unit: "requests a second"), default: MigrateBatch.rate,
      "How many requests a second.")
    concurrency = arguments.read(
      "--concurrency", "NUMBER", .integer(1...256, unit: "requests"), default: MigrateBatch.concurrency,
      "How many requests at once.")
    hasFaults = arguments.flag("--faults", "Apple throttles and fails on the way.")
  }

  func run() async -> ExitCode {
    do {
      let transfer = try await RehearsedTransfer(rate: rate, concurrency: concurrency, hasFaults: hasFaults)
      let isWhole = try await transfer.run(played)
      Terminal.say(timetable())
      return isWhole ? .success : .failure
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }

  private func timetable() -> String {
    let most = min(Double(rate), Double(concurrency) / RehearsedTransfer.latency)
    let time = Duration.seconds(Int64((Double(users) / most).rounded(.up)))
    let share = Double(users) / most / Double(TransferPlan.window.components.seconds)
    return """
      Timetable  \(users) users, \(Int(most)) requests a second
        generate  \(Self.words(time)), before the transfer is accepted or in the 60 days
        exchange  \(Self.words(time)), in the 60 days: \(share < 1 ? "they are enough" : "they are not enough: more --requests")
      """
  }

  /// `2:03:04`, and days before it.
  private static func words(_ time: Duration) -> String {
    let seconds = time.components.seconds
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let clock = "\(seconds / 3600 % 24):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    return seconds < 86_400 ? clock : "\(seconds / 86_400) d \(clock)"
  }
}
