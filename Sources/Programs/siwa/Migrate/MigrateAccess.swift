import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop

/// What the commands of a transfer have in common: they open the store, find the plan, and say what went wrong.
enum MigrateAccess {
  /// Why a command ends early.
  struct Refusal: Error {
    let words: String
    let exit: ExitCode
    init(_ words: String, _ exit: ExitCode = .misuse) { (self.words, self.exit) = (words, exit) }
  }

  /// Runs `body` with the open store.
  @Loop
  static func open(
    _ options: ConfigurationOptions, _ body: @Loop (any AccountStore) async throws -> ExitCode
  ) async -> ExitCode {
    await StoreAccess.open(options) { store throws(AccountStoreError) in
      do {
        return try await body(store)
      } catch let error as AccountStoreError {
        throw error
      } catch let refusal as Refusal {
        Terminal.complain("siwa: \(refusal.words)")
        return refusal.exit
      } catch {
        Terminal.complain("siwa: \(error)")
        return .failure
      }
    }
  }

  /// Runs `body` with the open store and the plan of that name, which has to be of that side where one is named.
  @Loop
  static func open(
    _ options: ConfigurationOptions, _ name: String, _ side: TransferPlan.Side? = nil,
    _ body: @Loop (any AccountStore, TransferPlan) async throws -> ExitCode
  ) async -> ExitCode {
    await open(options) { store in try await body(store, try await plan(name, side, in: store)) }
  }

  /// The plan of that name, also where it is being removed.
  @Loop
  static func anyPlan(_ name: String, in store: any TransferStore) async throws -> TransferPlan {
    guard let plan = try await store.transferPlans().first(where: { $0.name == name }) else {
      throw Refusal("there is no plan \(name): siwa migrate prepare makes one, siwa migrate status lists them")
    }
    return plan
  }

  /// The plan of that name, with which one can go on.
  @Loop
  static func plan(
    _ name: String, _ side: TransferPlan.Side?, in store: any TransferStore
  ) async throws -> TransferPlan {
    let plan = try await anyPlan(name, in: store)
    if plan.isBeingRemoved { throw Refusal("the plan \(name) is \(plan.removal)") }
    if let side, plan.side != side {
      throw Refusal("the plan \(name) is one of the \(plan.side.rawValue) team: see siwa migrate --help")
    }
    return plan
  }

  /// Names the first lines whose key leaves open whom it names.
  static func complain(of faults: KeyFaults) {
    for line in faults.first { Terminal.complain("siwa: \(line)") }
    let more = faults.count - Int64(faults.first.count)
    if more > 0 { Terminal.complain("siwa: and \(more) more such lines") }
  }

  /// Says what a run that was broken off had left.
  static func complain(ofLeftover path: String) {
    Terminal.complain("siwa: \(path) was left by a run that was broken off, and is removed")
  }

  /// Says how many users are done by the store and cannot be written, as their rows do not open.
  static func complain(ofDamaged count: Int64) {
    if count > 0 {
      Terminal.complain("siwa: \(count) users are damaged in the store, and not written: siwa store integrity")
    }
  }

  /// The configuration with the keys of the teams; nil where it is faulty, which was said then.
  static func configuration(_ options: ConfigurationOptions) -> MigrationConfiguration? {
    load(MigrationConfiguration.self, options)
  }

  /// The apps of the teams; nil where the configuration is faulty, which was said then.
  static func teams(_ options: ConfigurationOptions) -> TeamsSettings? { load(TeamsSettings.self, options) }

  private static func load<Value: Configurable>(_ type: Value.Type, _ options: ConfigurationOptions) -> Value? {
    do throws(ConfigurationError) {
      let sources = options.sources(environment: ConfigurationSources.processEnvironment)
      return try ConfigurationSchema.siwa.load(type, from: sources).value
    } catch {
      Terminal.complain("\(error)")
      return nil
    }
  }
}

extension TransferPlan {
  /// What it is, in a line.
  var words: String {
    side == .sending
      ? "\(name): \(client) goes from our team \(team) to \(otherTeam)"
      : "\(name): \(client) comes from \(otherTeam) to our team \(team)"
  }

  /// What is to be done about a removal that was broken off.
  var removal: String {
    "being removed, and nothing of its users can be read: siwa migrate remove \(name) --yes ends it"
  }
}

extension TransferCensus {
  var allRefused: Int64 { refused.values.reduce(0, +) }
  var allConflicts: Int64 { conflicts.values.reduce(0, +) }

  /// The numbers, a line each; how many have signed in is known of the receiving team alone.
  func lines(of plan: TransferPlan) -> [String] {
    var lines = ["Users      \(users)", "Waiting    \(waiting)", "Done       \(done)", "Refused    \(allRefused)"]
    lines += Self.reasons(refused)
    guard plan.side == .receiving else { return lines }
    lines.append("Conflicts  \(allConflicts)")
    lines += Self.reasons(conflicts)
    lines.append("Signed in  \(signedIn)")
    return lines
  }

  private static func reasons(_ counts: [TransferRefusal: Int64]) -> [String] {
    TransferRefusal.allCases.compactMap { reason in
      counts[reason].flatMap { $0 > 0 ? "  \(reason.rawValue)  \($0)" : nil }
    }
  }

  /// Whether somebody has to do something still.
  var exit: ExitCode { exitCode(decided: 0) }

  /// The same where it was decided what becomes of so many conflicts.
  func exitCode(decided: Int64) -> ExitCode {
    waiting == 0 && allRefused == 0 && allConflicts <= decided ? .success : .failure
  }
}

extension SettingType where Value == String {
  /// The name of a plan.
  static var planName: SettingType {
    SettingType(
      "name of a plan", expected: "1 to 40 small letters, digits and hyphens", standIn: "plan", show: { $0 },
      parse: { TransferPlan.isName($0) ? $0 : nil })
  }
}

extension SettingType where Value == Timestamp {
  /// When something happened: a time, or a day, which is its beginning in UTC.
  static var moment: SettingType {
    SettingType(
      "time", expected: "a time such as 2026-05-03T10:00:00Z, or a day", standIn: .now, show: \.description,
      parse: { Timestamp(rfc3339: $0) })
  }
}

extension CommandArguments {
  /// The plan that is meant.
  mutating func readPlan() -> String { read("NAME", .planName, "The plan.") }
}
