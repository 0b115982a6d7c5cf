import AccountEvents
import AccountServices
import Configuration
import EventLoop

/// What the commands that judge a period of an audit log have in common: the period, the deadline, and who is waited for.
struct AuditJudgement {
  let period: AuditPeriod
  let deadline: Duration
  private let absent: [String]

  init(reading arguments: inout CommandArguments) {
    let from = arguments.readIfPresent(
      "--from", "TIME", .moment,
      "What came then (2026-05-03T10:00:00Z, or a day in UTC) or later; otherwise from the beginning.")
    let to = arguments.readIfPresent("--to", "TIME", .moment, "What came before that; otherwise all.")
    deadline = arguments.read(
      "--deadline", "TIME", .duration(.seconds(1)...(.seconds(3650 * 86_400))), default: .seconds(30 * 86_400),
      "How long an obligation may be open.")
    absent = arguments.readAll(
      "--without", "CONSUMER", .auditedConsumer,
      "Does not wait for a consumer that is not run here; may be repeated; otherwise audit.without says.")
    period = AuditPeriod(from: from, to: to)
    if let from, let to, to <= from { arguments.refuse("--to has to be later than --from") }
  }

  /// Who has to say something about which events; `configured` are the consumers that the configuration says are not run.
  func concerned(_ configured: ConsumerSet) -> ConcernedConsumers {
    ConcernedConsumers(without: absent.isEmpty ? configured : ConsumerSet(absent.map { ConsumerSet($0) }))
  }

  /// Reads all of a log.
  @Loop
  func read(_ log: AuditLog, without configured: ConsumerSet) async throws -> AuditReporter {
    var reporter = AuditReporter(of: concerned(configured), in: period, within: deadline)
    let bar = ProgressBar("entries")
    try await log.entries(progress: { bar.note(done: $0, of: $1) }, { index, entry in reporter.take(entry, at: index) })
    bar.clear()
    return reporter
  }
}

extension SettingType where Value == String {
  /// The name of a consumer that a log is judged by.
  fileprivate static var auditedConsumer: SettingType {
    let names = ConsumerSet.everyone.names
    return SettingType(
      "consumer", expected: names.joined(separator: ", "), standIn: names[0], show: { $0 },
      parse: { names.contains($0) ? $0 : nil })
  }
}
