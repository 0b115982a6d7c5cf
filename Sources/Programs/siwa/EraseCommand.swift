import AccountEvents
import AccountServices
import AccountStore
import Configuration
import Cryptography
import EventLoop
import Glibc
import Kafka
import Telemetry

/// `siwa erase`: asks for the erasure of a person, or says what one would erase.
struct EraseCommand: Command {
  static let name = "erase"
  static let summary = "Asks for the deletion of a person's account, or says what it would erase."
  static let details = """
    Needs no event of Apple's: it puts account-deletion-requested onto apple.account-events.v1, with who asked for it and
    why, and with a code under the account store's key: who may write to the topic and has no store asks for nothing.
    siwa-token-revoker revokes at Apple, siwa-data-eraser erases from every target of the team's policy, siwa-email-relay
    forgets, each once and each with its outcome. On a terminal it asks before it does.
    The event's id is printed before anything is done. Should the command be cut short, repeat it with --id and that id:
    what is done is not done again. An id belongs to the person whom it was made for, and is taken for nobody else.

    With --dry-run nothing is changed: the same targets are asked, in the same order and by the same settings, how much
    they hold; services and topics cannot be asked.

    With --verify nothing is changed: every place that the programs write to is searched for the person, topics, spool,
    the memory of duplicates, the account store and the audit log's directory, and of each is said what was found and until
    when it stays. It asks neither your targets nor backups.

    Exit codes: 0 asked for, all was asked, or nothing is left but what goes by itself, 1 it was not, a target could not
    be asked, or something stays until somebody does something about it, 2 the command line, the configuration or the
    store has to change first, 3 the cluster, the store or a place cannot be asked.

    """
  static let examples = [
    CommandExample(
      "siwa erase --dry-run --team A1B2C3D4E5 --sub -", "The person whose sub stands on the standard input."),
    CommandExample(
      "siwa erase --dry-run --team A1B2C3D4E5 --sub - --on consent-revoked",
      "What the team's policy erases where a person withdraws consent."),
    CommandExample(
      "siwa erase --verify --team A1B2C3D4E5 --sub -", "What is left of an erased person, and until when."),
    CommandExample(
      "siwa erase --team A1B2C3D4E5 --sub - --by support --reason 'letter of 3 May' --yes", "Erases, without asking."),
  ]

  /// What leads to an erasure.
  private enum Cause: String, CaseIterable {
    case accountDelete = "account-delete"
    case consentRevoked = "consent-revoked"
  }

  private let isDryRun: Bool
  private let verification: EraseVerification?
  private let team: TeamID
  private let subject: String
  private let cause: Cause
  private let person: String
  private let reason: String?
  private let id: EventID?
  private let isConfirmed: Bool
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    isDryRun = arguments.flag("--dry-run", "Asks the targets what they hold, and erases nothing.")
    verification = EraseVerification(reading: &arguments)
    team = arguments.read("--team", "TEAM", .teamID, "The team of the app.")
    subject = arguments.read(
      "--sub", "SUB", .text(1...255),
      "The person, as Apple names them to the team. With - it is read from the standard input, and no shell keeps it.")
    cause = arguments.read(
      "--on", "EVENT", .choice(Cause.self), default: .accountDelete, "With --dry-run: which event is thought of.")
    person = arguments.readPerson()
    reason = arguments.readIfPresent(
      "--reason", "TEXT", .text(3...1000), "Why; it is kept with the event, without personal data.")
    id = arguments.readIfPresent("--id", "ID", .eventID, "The event's id: that of the command that is repeated.")
    isConfirmed = arguments.flag("--yes", "Does not ask.")
    options = ConfigurationOptions(reading: &arguments)
    if isDryRun, verification != nil { arguments.refuse("say one of --dry-run and --verify") }
    if !isDryRun, verification == nil {
      if reason == nil { arguments.refuse("--reason TEXT: missing; it is kept with the event") }
      if cause == .consentRevoked { arguments.refuse("--on consent-revoked goes with --dry-run") }
    }
  }

  func run() async -> ExitCode {
    guard let subject = AppleSubject(subject == "-" ? readLine(strippingNewline: true) ?? "" : subject) else {
      Terminal.complain("siwa: --sub: expected 1 to 255 visible ASCII characters")
      return .misuse
    }
    let account = Account(team: team, subject: subject)
    if let verification { return await verification.run(account, options) }
    return isDryRun ? await survey(account) : await ask(for: account)
  }

  // MARK: The request

  @Loop
  private func ask(for account: Account) async -> ExitCode {
    if let id, !id.isOfOperator(for: account) {
      Terminal.complain("siwa: --id is not of a request for this account")
      return .misuse
    }
    let event: AccountEvent
    do {
      let sources = options.sources(environment: ConfigurationSources.processEnvironment)
      let settings = try ConfigurationSchema.siwa.load(ErasureSettings.self, from: sources).value
      let audiences = try ConfigurationSchema.siwa.load(TeamsSettings.self, from: sources).value.teams
      guard let policy = settings.policies[team],
        let audience = audiences.filter({ $0.value == team }).keys.min(by: { $0.text < $1.text })
      else {
        Terminal.complain("siwa: teams.\(team): its erase or its audiences are missing")
        return .misuse
      }
      guard isConfirmed || confirms(policy.accountDelete) else { return .misuse }
      let now = Timestamp.now
      event = AccountEvent(
        id: try id ?? .ofOperator(for: account), team: team, audience: audience, subject: account.subject,
        kind: .accountDeletionRequested, occurredAt: now, issuedAt: now)
    } catch let faults as ConfigurationError {
      Terminal.complain("\(faults)")
      return .misuse
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
    // Consumers that verify events believe what was asked for with the store's key.
    var request: EventRecord?
    let opening = await StoreAccess.open(options) { store in
      request = EventRecord(event, requestedBy: person, because: reason ?? "", code: store.code)
      return .success
    }
    guard let request else { return opening }
    Terminal.say("event      \(event.id)")
    return await options.withKafka { configuration, log throws(KafkaError) in
      let producer = try Producer(configuration, deadline: Self.deadline, log: log)
      let record = KafkaRecord(request)
      let result: Result<KafkaPosition, KafkaError>
      do throws(KafkaError) { result = .success(try await producer.send(record)) } catch { result = .failure(error) }
      await producer.close(within: Self.deadline)
      if case .failure = result {
        Terminal.complain("siwa: not known to be asked for: repeat it with --id \(event.id)")
      }
      let position = try result.get()
      Terminal.say("asked for  \(record.topic)/\(position.partition)/\(position.offset)")
      return .success
    }
  }

  private static let deadline = Duration.seconds(30)

  /// Asks on the terminal; without one, says what is missing.
  private func confirms(_ plan: [String]) -> Bool {
    guard isatty(STDIN_FILENO) == 1 else {
      Terminal.complain("siwa: nobody can be asked here: say --yes")
      return false
    }
    Terminal.complain("Erases the account for good, from: \(plan.joined(separator: ", ")). Type the Team ID to go on:")
    if readLine(strippingNewline: true) == team.text { return true }
    Terminal.complain("siwa: nothing was done")
    return false
  }

  // MARK: What would be erased

  @Loop
  private func survey(_ account: Account) async -> ExitCode {
    do {
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
      let order = ErasureOrder(
        account: account, event: try .ofOperator(for: account), reason: cause.rawValue, occurredAt: .now)
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
        let policies =
          (target as? PostgreSQLTarget)?.rowSecurity ?? false ? ", as far as row-level security shows it" : ""
        let found = count.map { "\($0) found, would be erased" } ?? "cannot count, would be told to erase"
        Terminal.say("\(name): \(found)\(cascades)\(policies)")
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

extension EventID {
  private static let operatorPrefix = "operator-"
  private static let randomByteCount = 16

  /// An id of our own, unlike any of Apple's: `operator-R-H`, where R is random and H two bytes of a digest of the account.
  /// What is done is known by the event's id alone, so that nobody may be asked for under the id of somebody else's
  /// request. Outcomes keep the id for ever: two bytes find a mistake, and fit too many accounts to name one.
  fileprivate static func ofOperator(for account: Account) throws -> EventID {
    ofOperator(for: account, random: try SecureRandom.bytes(randomByteCount))
  }

  /// Whether it was made for a request for the account.
  fileprivate func isOfOperator(for account: Account) -> Bool {
    guard text.hasPrefix(Self.operatorPrefix) else { return false }
    let random = Base64URL.decode(
      String(text.dropFirst(Self.operatorPrefix.count).prefix((Self.randomByteCount * 4 + 2) / 3)))
    guard let random, random.count == Self.randomByteCount else { return false }
    return self == .ofOperator(for: account, random: random)
  }

  private static func ofOperator(for account: Account, random: [UInt8]) -> EventID {
    let digest = SHA256.digest(of: random + account.key).bytes.prefix(2)
    let id = EventID("\(operatorPrefix)\(Base64URL.encode(random))-\(Base64URL.encode(Array(digest)))")
    guard let id else { preconditionFailure("letters, digits, hyphens and underscores") }
    return id
  }
}

extension SettingType where Value == EventID {
  /// The id of an event.
  static var eventID: SettingType {
    SettingType(
      "event ID", expected: "an event's id (1 to 128 visible ASCII characters)", standIn: .sample, show: \.text,
      parse: { EventID($0) })
  }
}

extension EventID {
  fileprivate static var sample: EventID {
    guard let id = EventID("operator-S25cB0PbHs6y97gYYmgydQ") else { preconditionFailure("the sample is well-formed") }
    return id
  }
}
