import EventLoop
import Foundation
import Testing

/// What came out of a trial.
struct Outcome {
  /// What the sender has to say.
  let sent: PersistentSender.Report
  /// What the checker has to say.
  let verdict: EventHistory.Verdict
  let recoveries: [Disruption: (times: Int, slowest: Duration)]
  let memory: (now: Double, most: Double, growth: Double)
  let starts: Int
  let complaints: [String: Int]
  /// How many events have an obligation in the audit log, and how often that was started; nil where there was none.
  let audited: (events: Int, starts: Int)?

  /// The longest that it took until all was well again.
  var slowestRecovery: Duration { recoveries.values.map(\.slowest).max() ?? .zero }

  /// The tables of docs/reliability.md.
  var tables: String {
    let answers = sent.answers.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }.joined(separator: ", ")
    let rate = Double(verdict.acknowledged) / sent.seconds
    var rows: [(String, String)] = [
      ("notifications answered 200", "\(verdict.acknowledged), \(Int(rate)) a second, all faults included"),
      ("requests", "\(sent.requests); answers: \(answers)"),
      ("answers that the sender never saw, or ignored", "\(sent.cut + sent.ignored + sent.broken + sent.late)"),
      ("**acknowledged and lost**", "**\(verdict.missing)**"),
      ("**out of order for their user**", "**\(verdict.outOfOrder)**"),
      (
        "twice on the topic",
        "\(verdict.twice) (\(String(format: "%.4f", 100 * Double(verdict.twice) / Double(max(verdict.acknowledged, 1)))) %)"
      ),
      ("in quarantine, while the clock was wrong", "\(verdict.quarantined)"),
      ("slowest recovery", "\(Trial.seconds(slowestRecovery)) s"),
      ("from request to answer", "p50 \(sent.p50) ms, p99 \(sent.p99) ms, slowest \(sent.slowest) ms"),
      (
        "memory of the ingress",
        String(
          format: "%.0f MB at most; %.0f MB more at most than after a life's first half minute", memory.most,
          memory.growth)
      ),
      ("starts of the ingress", "\(starts)"),
      ("what the ingress logged as an error", complaints.map { "\($0.value) × «\($0.key)»" }.joined(separator: "; ")),
    ]
    if let audited {
      rows.append(
        ("in the audit log, which was started \(audited.starts) times", "\(audited.events), one obligation each"))
    }
    let faults = Disruption.allCases.map { kind -> String in
      let (times, slowest) = recoveries[kind] ?? (0, .zero)
      return "| \(kind.rawValue) | \(times) | \(Trial.seconds(slowest)) s |"
    }
    return """
      | figure | |
      |---|---|
      \(rows.map { "| \($0.0) | \($0.1) |" }.joined(separator: "\n"))

      | fault | times | well again after, at most |
      |---|---|---|
      \(faults.joined(separator: "\n"))
      """
  }
}

extension Outcome {
  /// What holds whatever broke.
  func expectNothingLost(_ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation) {
    let words: Comment = "\(comment)\n\(verdict.examples)\n\(tables)"
    #expect(verdict.missing == 0, words, sourceLocation: sourceLocation)
    #expect(verdict.outOfOrder == 0 && verdict.unknown == 0, words, sourceLocation: sourceLocation)
  }
}
