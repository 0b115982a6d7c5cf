import AccountEvents
import AccountServices
import AccountStore
import Configuration
import EventLoop

/// `siwa migrate results`: what the receiving team's own database needs.
struct MigrateResults: Command {
  static let name = "migrate results"
  static let summary = "Writes who the users are at the receiving team into a private file: it holds personal data."
  static let details = """
    A line of JSON for each user whose identifier was exchanged:
      {"key":"…","sub":"…","email":"…","is_private_email":true}
    key is what the sending team knows the user by, sub what Apple names them to our team. email is null where Apple gives
    none: it does for users of its private relay alone. Of a conflict there is a line once siwa migrate decide has noted what
    was decided, with the member "decision": keep-old, keep-new or separate. It has the sub with keep-new alone; then the line
    of the key that came to the account first says so, too, and has a sub of null. This is the one output of siwa migrate with personal data: only this
    user can read the file; bring it into your database, then destroy it. Killed, the command leaves FILE.new behind, with
    personal data, too; the same again removes it, and says so. A user whose row in the store is damaged stands in no line:
    they are counted, and siwa store integrity names them.

    Exit codes: 0 written; 1 not written, or users wait still, were refused, are in conflict or damaged; 2 the command line,
    the configuration or the store has to change first; 3 the store cannot be reached at the moment.

    """
  static let examples = [CommandExample("siwa migrate results spring results.jsonl", "After siwa migrate exchange.")]

  private static let page = 512

  private let plan: String
  private let file: String
  private let options: ConfigurationOptions

  init(reading arguments: inout CommandArguments) {
    plan = arguments.readPlan()
    file = arguments.read("FILE", .path, "Where they go; a file that is there is replaced.")
    options = ConfigurationOptions(reading: &arguments)
  }

  func run() async -> ExitCode {
    await MigrateAccess.open(options, plan, .receiving) { store, plan in
      let draft = try TransferDraft(file, by: Age(ConfigurationSources.processEnvironment))
      let census = try await store.census(of: plan)
      let decided = try await MigrateConflicts.all(of: plan, store).filter { $0.decision != nil }
      let givenAway = Set(decided.filter(\.isGivenAccount).compactMap(\.subject))
      try Self.refuseTwo(decided.filter(\.isGivenAccount), of: plan)
      if let leftover = draft.leftover { MigrateAccess.complain(ofLeftover: leftover) }
      let bar = ProgressBar("users")
      var (count, damaged, last) = (Int64(0), Int64(0), Int64(0))
      while true {
        let users = try await store.transferUsers(of: plan, in: .done, after: last, limit: Self.page)
        guard let end = users.last else { break }
        last = end.number
        for user in users {
          let isGivenAway = user.subject.map { givenAway.contains($0) } ?? false
          guard let line = TransferLine.result(user, isGivenAway ? .keepNew : nil) else {
            damaged += 1
            continue
          }
          try draft.write(line)
          count += 1
        }
        bar.note(done: count, of: max(census.done, count))
      }
      for user in decided {
        if let line = TransferLine.result(user, user.decision?.choice) { try draft.write(line) }
      }
      _ = try draft.finish()
      try draft.publish()
      bar.clear()
      MigrateAccess.complain(ofDamaged: damaged)
      Terminal.say("Written    \(count) users to \(file): personal data; destroy it once it is in your database")
      if !decided.isEmpty { Terminal.say("Decided    \(decided.count) conflicts, a line for each") }
      Terminal.say(census.lines(of: plan).joined(separator: "\n"))
      Terminal.say("60 days    \(TransferWindow(plan).words(at: .now))")
      return damaged == 0 ? census.exitCode(decided: Int64(decided.count)) : .failure
    }
  }

  /// Two who decide at once may each give the same account away.
  private static func refuseTwo(_ given: [TransferUser], of plan: TransferPlan) throws {
    var first: [AppleSubject: Int64] = [:]
    for user in given {
      guard let subject = user.subject, let other = first.updateValue(user.number, forKey: subject) else { continue }
      throw MigrateAccess.Refusal(
        "one account is of user \(other) and of user \(user.number) by decisions: siwa migrate decide \(plan.name)",
        .failure)
    }
  }
}
