import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Telemetry

/// `siwa accounts validate`: what siwa-accounts does over the day, at once.
struct AccountsValidate: Command {
  static let name = "accounts validate"
  static let summary = "Validates at Apple all refresh tokens that are due: each at most once a day."
  static let details = """
    siwa-accounts does the same by itself, spread over the day (accounts.validation); this command does at once what is due.
    Due is a refresh token that was validated, or issued, a day ago or before. None is asked about twice in a day, whoever
    does it and whatever is killed. While this command runs, it does so in the place of siwa-accounts, which goes on half a
    minute after it at the latest: together they ask Apple no more often than accounts.validation.requests says.

    invalid_grant says that a token is over, and nothing else does. Where no other one of the person's authorization is left,
    the event credential-invalid goes into the store's outbox, from where siwa-accounts publishes it: then follows what
    follows from consent-revoked. A person who has signed in anew keeps that sign-in. What Apple leaves in doubt changes
    nothing. Where Apple does not accept an app or its team's key, that app is left alone. Of an app with more than a hundred
    tokens nothing is concluded before Apple has taken one in this run, nor after it has not taken a hundred in a row: they
    may be another app's. See --believe-all.

    The progress stands on standard error, what came of it on standard output:
      Good       tokens that Apple takes
      Invalid    tokens that it does not take any more
      Published  authorizations that are over, each with an event
      Doubtful   tokens of which Apple said nothing that could be understood, or that may be another app's: asked about a
                 day later
      Left       tokens that are due still

    Exit codes: 0 nothing is due any more and nothing was left in doubt; 1 something is left, or in doubt; 2 the command line,
    the configuration or the store has to change first; 3 the store or Apple cannot be reached at the moment. Invalid tokens
    are no failure.

    """
  static let examples = [
    CommandExample("siwa accounts validate --dry-run", "How many tokens are due; asks Apple nothing, changes nothing."),
    CommandExample("siwa accounts validate", "After an import, or after days without siwa-accounts."),
    CommandExample("siwa accounts validate --requests 5", "More slowly than accounts.validation.requests says."),
  ]

  /// After so many failures of Apple's in a row, half a minute in all, it counts as unreachable.
  private static let patience = 6

  private let isRehearsal: Bool
  private let believesAll: Bool
  private let rate: Int?
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    isRehearsal = arguments.flag("--dry-run", "Says how many tokens are due; asks Apple nothing, changes nothing.")
    believesAll = arguments.flag(
      "--believe-all", "Believes Apple, too, where it takes no token of an app: they were the app's, and are all over.")
    rate = arguments.readIfPresent(
      "--requests", "NUMBER", .integer(1...10_000, unit: "requests a second"),
      "How many requests a second, in place of accounts.validation.requests.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    if isRehearsal {
      return await StoreAccess.open(options) { store throws(AccountStoreError) in
        let census = try await store.validationCensus(at: .now)
        Terminal.say("Tokens     \(census.tokens)\nDue        \(census.due)\nNothing was changed")
        return .success
      }
    }
    let configuration: ValidationConfiguration
    do throws(ConfigurationError) {
      let sources = options.sources(environment: ConfigurationSources.processEnvironment)
      configuration = try ConfigurationSchema.siwa.load(ValidationConfiguration.self, from: sources).value
    } catch {
      Terminal.complain("\(error)")
      return .misuse
    }
    return await StoreAccess.open(options) { store throws(AccountStoreError) in
      do {
        return try await validate(configuration, store)
      } catch let error as AccountStoreError {
        throw error
      } catch {
        Terminal.complain("siwa: \(error)")
        return .failure
      }
    }
  }

  @Loop
  private func validate(_ configuration: ValidationConfiguration, _ store: any AccountStore) async throws -> ExitCode {
    let validation = Validation(
      configuration, store: store, rate: rate, believesAll: believesAll, patience: Self.patience, userAgent: "siwa",
      takeovers: nil, metrics: ValidationMetrics(MetricsRegistry()), logger: Logger(level: .error, format: .text))
    let total = Int64(try await store.validationCensus(at: .now).due)
    let bar = ProgressBar("tokens")
    validation.tell = { bar.note(done: Int64($0.done), of: max(total, Int64($0.done))) }
    let lease = try await store.takeOver(Lease.validation, by: try Lease.newHolder(), at: .now)
    let ending = try await Interruption.stopping {
      validation.end()
    } _: {
      let ending = await validation.shift(under: lease, until: .distantFuture)
      validation.end()
      await validation.finish()
      return ending
    }
    bar.clear()
    let progress = validation.progress
    // What was done is said first: the store may have gone away meanwhile.
    Terminal.say(
      """
      Good       \(progress.good)
      Invalid    \(progress.invalid)
      Published  \(progress.published)
      Doubtful   \(progress.doubtful)
      """)
    try await store.giveUp(lease)
    let left = try await store.validationCensus(at: .now).due
    Terminal.say("Left       \(left)")
    for client in validation.stopped.map(\.text).sorted() {
      Terminal.complain("siwa: \(client): left alone, see the errors above")
    }
    switch ending {
    case .store(let error): throw error
    case .appleFails:
      Terminal.complain("siwa: Apple cannot be reached, or answers nothing that can be understood")
      return .unreachable
    case .leaseLost:
      Terminal.complain("siwa: another process has taken over")
      return .failure
    case .nothingDue, .timeOver, .ended:
      return left == 0 && progress.doubtful == 0 && progress.damaged == 0 ? .success : .failure
    }
  }
}

extension AccountsValidate: StoppedInOrder {}
