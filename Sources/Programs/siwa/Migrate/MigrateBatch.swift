import AccountEvents
import AccountServices
import AccountStore
import AppleID
import Configuration
import EventLoop

/// What `siwa migrate generate` and `siwa migrate exchange` are: one engine, two sides.
struct MigrateBatch {
  /// After so many failures of Apple's in a row, twenty minutes in all, it counts as unreachable.
  private static let patience = 12
  /// What Apple has been seen to bear, in the absence of a limit of its own.
  static let (rate, concurrency) = (20, 16)

  private let name: String
  private let rate: Int
  private let concurrency: Int
  private let question: TransferRun.Question
  private let beliefs: TransferRun.Beliefs
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    name = arguments.readPlan()
    rate = arguments.read(
      "--requests", "NUMBER", .integer(1...10_000, unit: "requests a second"), default: Self.rate,
      "How many requests a second.")
    concurrency = arguments.read(
      "--concurrency", "NUMBER", .integer(1...256, unit: "requests"), default: Self.concurrency,
      "How many requests at once.")
    let asksAgain = arguments.flag(
      "--refused-again", "Asks about those alone whom Apple has refused before: they may have consented since.")
    question = asksAgain ? .refusedAgain : .waiting
    let believesRefusals = arguments.flag(
      "--believe-refusals",
      "Believes that all whom Apple refuses have withdrawn consent, also a hundred in a row, or everybody.")
    let believesConflicts = arguments.flag(
      "--believe-conflicts", "Believes that all who come to the accounts of others are conflicts, also five in a row.")
    var beliefs: TransferRun.Beliefs = []
    if believesRefusals { beliefs.insert(.refusals) }
    if believesConflicts { beliefs.insert(.conflicts) }
    self.beliefs = beliefs
    options = ConfigurationOptions(reading: &arguments)
  }

  /// What both commands say of themselves.
  static let details = """
    Apple names no limit, so agree on a rate with yourself and begin low: --requests a second, at most --concurrency at once.
    While Apple throttles or fails it is asked more slowly, and faster again afterwards; where it throttles one question among
    many, that one waits as long as Apple asks, and nobody else. Where nobody is asked for ten seconds and more, that is said. The team's token of an hour and the client secret are renewed
    on the way.

    Before all others one user is tried. Then each user is asked about once; what stays in doubt is asked again in the same
    run, five times at most, and is left for the next one: the first 20 of those are named. A refusal (withdrawn consent) is
    written down and stops nothing. What only you can put right stops it at once, and is named. So do five useless answers in a
    row, and five conflicts in a row (--believe-conflicts goes on). After a hundred refusals in a row, and at the end of the
    plan, Apple is asked about somebody of whom it has said something before: where it does so again, the refusals are written
    down, and it goes on; where it does not, it stops, and nothing is concluded from them (--believe-refusals concludes it).
    A refusal stands in the plan until --refused-again asks about it; who is refused again stays as they are.

    Interrupted or killed, the same command goes on with the first user who has no result; what was under way, at most twice
    --concurrency, is asked again, and Apple says the same. Started a second time, it takes the work over from the first.

    The progress stands on standard error, how it stands with the plan on standard output.

    Exit codes: 0 every user has a result; 1 some are left, refused or in conflict; 2 the command line, the configuration,
    the plan or something at Apple has to change first; 3 the store or Apple cannot be reached at the moment.

    """

  /// Does it for the plan, which has to be of that side.
  func run(_ side: TransferPlan.Side, counting what: String) async -> ExitCode {
    guard let configuration = MigrateAccess.configuration(options) else { return .misuse }
    return await MigrateAccess.open(options, name, side) { store, plan in
      let apple = TransferApple(
        configuration, of: plan, concurrency: concurrency, userAgent: "siwa", now: { .now })
      return try await run(plan, store, apple, configuration, what)
    }
  }

  @Loop
  private func run(
    _ plan: TransferPlan, _ store: any AccountStore, _ apple: TransferApple, _ configuration: MigrationConfiguration,
    _ what: String
  ) async throws -> ExitCode {
    let before = try await store.census(of: plan)
    let asked = question == .waiting ? before.waiting : before.allRefused
    warn(plan, asked)
    let lease = try await store.takeOver(plan.lease, by: try Lease.newHolder(), at: .now)
    let run = TransferRun(
      plan, store, under: lease,
      renew: { lease throws(AccountStoreError) in try await store.renew(lease) }, apple: apple,
      rate: rate, concurrency: concurrency, question: question, beliefs: beliefs, patience: Self.patience,
      clock: .system)
    let bar = ProgressBar(what)
    var rest: TransferRun.Rest?
    run.tell = { progress in
      if let next = progress.rest, next != rest {
        rest = next
        bar.clear()
        Terminal.complain("siwa: \(next.words(at: .now))")
      }
      bar.note(done: Int64(progress.answered), of: max(asked, Int64(progress.answered)))
    }
    let ending = try await Interruption.stopping {
      run.end()
    } _: {
      await run.run()
    }
    bar.clear()
    // What was done is said first: the store may have gone away meanwhile.
    say(run.progress)
    try await store.giveUp(run.lease)
    let after = try await store.census(of: plan)
    Terminal.say(after.lines(of: plan).joined(separator: "\n"))
    Terminal.say("60 days    \(TransferWindow(run.plan).words(at: .now))")
    warn(plan, after.waiting)
    let words = ending.words(of: run.plan, keys: configuration.keys(of:), at: .now)
    if let words { Terminal.complain("siwa: \(words)") }
    if case .misconfigured(let error, let team) = ending, error.code == .invalidClient {
      let more = await configuration.wordsOfAnotherApp(of: team, than: plan, userAgent: "siwa", now: { .now })
      if let more { Terminal.complain("siwa: \(more)") }
    }
    return exit(ending, after)
  }

  /// Warns where the rate will not do.
  private func warn(_ plan: TransferPlan, _ waiting: Int64) {
    guard !TransferWindow(plan).suffices(for: waiting, rate: Double(rate), at: .now) else { return }
    Terminal.complain(
      "siwa: \(waiting) users at \(rate) requests a second take \(TransferWindow.words(.seconds(waiting / Int64(rate)))): "
        + "longer than is left of the 60 days")
  }

  private func say(_ progress: TransferRun.Progress) {
    switch progress.trial {
    case .thereAndBack:
      Terminal.say("Trial      one user, there and back: the other team gets an account for the identifier")
    case .thereAlone:
      Terminal.say(
        "Trial      one user: Apple gives an identifier. Whether it is good the recipient's first exchange says")
    case .exchanged: Terminal.say("Trial      one user: Apple gives an account for the identifier")
    case nil: break
    }
    Terminal.say("Asked      \(progress.answered) users, \(progress.again) of the requests once more")
    if progress.left == 0 { return }
    Terminal.say("Left       \(progress.left)")
    for left in progress.firstLeft { Terminal.say("  \(left.code.rawValue)  \(left.key)") }
    let more = progress.left - progress.firstLeft.count
    if more > 0 { Terminal.say("  and \(more) more") }
  }

  private func exit(_ ending: TransferRun.Ending, _ census: TransferCensus) -> ExitCode {
    switch ending {
    case .complete: census.exit
    case .ended, .leaseLost: .failure
    case .planGone, .notAccepted, .windowOver, .misconfigured, .allRefused, .useless, .allConflicts: .misuse
    case .appleFails: .unreachable
    case .store(let error): error.code == .unavailable ? .unreachable : .misuse
    }
  }
}

/// `siwa migrate generate`: the sending team's batch.
struct MigrateGenerate: Command {
  static let name = "migrate generate"
  static let summary = "Has Apple give a transfer identifier for every user of the plan: the sending team's side."
  static let details = """
    It works before the transfer is accepted, and for 60 days from then on. The recipient needs the identifiers within these
    60 days: generate early.

    """ + MigrateBatch.details
  static let examples = [
    CommandExample("siwa migrate generate summer", "20 requests a second, 16 at once."),
    CommandExample("siwa migrate generate summer --requests 200 --concurrency 32", "Faster, once that went well."),
    CommandExample(
      "siwa migrate generate summer --refused-again", "Whether those who were refused have consented since."),
  ]

  private let batch: MigrateBatch

  init(reading arguments: inout CommandArguments) { batch = MigrateBatch(reading: &arguments) }

  func run() async -> ExitCode { await batch.run(.sending, counting: "users") }
}

/// `siwa migrate exchange`: the receiving team's batch.
struct MigrateExchange: Command {
  static let name = "migrate exchange"
  static let summary = "Has Apple say who the transfer identifiers stand for: the receiving team's side."
  static let details = """
    It works from the moment on when the transfer is accepted (siwa migrate accept), for 60 days. Who signs in meanwhile is
    recognized by the identity token; batch and sign-in come to the same account, in any order.

    """ + MigrateBatch.details
  static let examples = [
    CommandExample("siwa migrate exchange spring", "20 requests a second, 16 at once.")
  ]

  private let batch: MigrateBatch

  init(reading arguments: inout CommandArguments) { batch = MigrateBatch(reading: &arguments) }

  func run() async -> ExitCode { await batch.run(.receiving, counting: "users") }
}

extension MigrateGenerate: StoppedInOrder {}
extension MigrateExchange: StoppedInOrder {}
