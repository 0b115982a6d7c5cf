package import AccountEvents
package import AccountStore

/// The 60 days in which both teams can ask Apple, as they are told.
package struct TransferWindow: Sendable, Hashable {
  /// How it stands with them.
  package enum State: Sendable, Hashable {
    /// Nobody has said yet when the transfer was accepted.
    case unknown
    /// It is accepted at a moment to come.
    case notYet
    /// Both teams can ask.
    case open
    /// Nobody can ask any more.
    case closed
  }

  private let plan: TransferPlan

  /// The window of a plan.
  package init(_ plan: TransferPlan) { self.plan = plan }

  /// How it stands at that moment.
  package func state(at time: Timestamp) -> State {
    guard let acceptedAt = plan.acceptedAt, let closesAt = plan.closesAt else { return .unknown }
    return time < acceptedAt ? .notYet : time < closesAt ? .open : .closed
  }

  /// What is left of them; nil while that is not known.
  package func left(at time: Timestamp) -> Duration? { plan.closesAt.map { max($0 - time, .zero) } }

  /// What is left, in days and hours, and what follows when nothing is.
  package func words(at time: Timestamp) -> String {
    guard let acceptedAt = plan.acceptedAt, let closesAt = plan.closesAt else {
      return "not accepted yet, as far as is known: `siwa migrate accept \(plan.name) DATE` notes when it is"
    }
    switch state(at: time) {
    case .unknown, .notYet: return "begins \(acceptedAt), when the transfer is accepted"
    case .open: return "\(Self.words(closesAt - time)) left, until \(closesAt): then \(Self.end)"
    case .closed: return "over since \(closesAt): \(Self.end)"
    }
  }

  private static let end =
    "Apple neither gives identifiers any more nor exchanges them, and identity tokens have no transfer_sub any more"

  /// Whether so many users can be asked about in what is left, at so many a second.
  package func suffices(for users: Int64, rate: Double, at time: Timestamp) -> Bool {
    guard let left = left(at: time) else { return true }
    return Double(users) / rate <= Double(left.components.seconds)
  }

  /// `41 days 6 hours`.
  package static func words(_ duration: Duration) -> String {
    let hours = max(duration.components.seconds, 0) / 3600
    func count(_ number: Int64, _ what: String) -> String { "\(number) \(what)\(number == 1 ? "" : "s")" }
    return "\(count(hours / 24, "day")) \(count(hours % 24, "hour"))"
  }
}
