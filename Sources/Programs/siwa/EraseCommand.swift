import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop
import Kafka
import Telemetry

/// `siwa erase`: what would be erased of a person.
struct EraseCommand: Command {
  static let name = "erase"
  static let summary = "Says what would be erased of a person, target by target, and erases nothing."
  static let details = """
    Erasures follow from events: siwa-data-eraser does them. This asks the same targets, in the same order and by the same
    settings, how much they hold; services and topics cannot be asked. Nothing is changed.

    Exit codes: 0 all was asked, 1 a target could not be asked, 2 the command line or the configuration has to change
    first.

    """
  static let examples = [
    CommandExample(
      "siwa erase --dry-run --team A1B2C3D4E5 --sub -", "The person whose sub stands on the standard input."),
    CommandExample(
      "siwa erase --dry-run --team A1B2C3D4E5 --sub - --on consent-revoked",
      "What the team's policy erases where a person withdraws consent."),
  ]

  /// What leads to an erasure.
  private enum Cause: String, CaseIterable {
    case accountDelete = "account-delete"
    case consentRevoked = "consent-revoked"
  }

  private let team: TeamID
  private let subject: String
  private let cause: Cause
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    let isDryRun = arguments.flag("--dry-run", "Has to be there: this command erases nothing.")
    team = arguments.read("--team", "TEAM", .teamID, "The team of the app.")
    subject = arguments.read(
      "--sub", "SUB", .text(1...255),
      "The person, as Apple names them to the team. With - it is read from the standard input, and no shell keeps it.")
    cause = arguments.read(
      "--on", "EVENT", .choice(Cause.self), default: .accountDelete, "Which event is thought of.")
    options = ConfigurationOptions(reading: &arguments)
    if !isDryRun { arguments.refuse("say --dry-run: erasures follow from events, and siwa-data-eraser does them") }
  }

  func run() async -> ExitCode { await survey() }

  @Loop
  private func survey() async -> ExitCode {
    do {
      let text = subject == "-" ? readLine(strippingNewline: true) ?? "" : subject
      guard let subject = AppleSubject(text) else {
        Terminal.complain("siwa: --sub: expected 1 to 255 visible ASCII characters")
        return .misuse
      }
      let sources = options.sources(environment: ConfigurationSources.processEnvironment)
      let settings = try ConfigurationSchema.siwa.load(ErasureSettings.self, from: sources).value
      guard let policy = settings.policies[team] else {
        Terminal.complain("siwa: teams.\(team).erase: missing, so nothing would be erased")
        return .misuse
      }
      let plan = cause == .consentRevoked ? policy.consentRevoked : policy.accountDelete
      let kafka = try ConfigurationSchema.siwa.load(KafkaSettings.self, from: sources).value.configuration(of: "siwa")
      let targets = try Erasures.makeTargets(
        settings.targets, kafka: kafka, logger: Logger(level: .error, format: .text))
      guard let event = EventID("dry-run") else { preconditionFailure("the id is well-formed") }
      let order = ErasureOrder(
        account: Account(team: team, subject: subject), event: event, reason: cause.rawValue, occurredAt: .now)
      return await say(order, plan, targets)
    } catch let faults as ConfigurationError {
      Terminal.complain("\(faults)")
      return .misuse
    } catch {
      Terminal.complain("siwa: \(error)")
      return .misuse
    }
  }

  /// A line for each target, in their order.
  @Loop
  private func say(_ order: ErasureOrder, _ plan: [String], _ targets: [Erasures.NamedTarget]) async -> ExitCode {
    var exit = ExitCode.success
    for (name, target) in targets {
      guard plan.contains(name) else {
        Terminal.say("\(name): not touched by \(cause.rawValue)")
        continue
      }
      if let retention = target as? Retention {
        Terminal.say("\(name): stays: \(retention.words)")
        continue
      }
      do throws(ErasureFailure) {
        let count = try await target.count(order)
        let cascades = (target as? SQLiteTarget)?.foreignKeys ?? false ? ", and what its foreign keys cascade to" : ""
        let found = count.map { "\($0) found, would be erased" } ?? "cannot count, would be told to erase"
        Terminal.say("\(name): \(found)\(cascades)")
      } catch {
        Terminal.complain("siwa: \(name): \(error)")
        exit = .failure
      }
    }
    let isStoreErased = plan.contains(ErasureSettings.accountStore)
    Terminal.say("\(ErasureSettings.accountStore): \(isStoreErased ? "would be erased" : "not touched")")
    return exit
  }
}
