package import EventLoop

/// Whether a consumer gets its share of its group's partitions, by what reading and asking came to. Without partitions it
/// is as well as with some, if the group says so.
package struct GroupHealth: Sendable {
  /// Errors of reading that follow one another within this time are one failure.
  package static let pause = Duration.seconds(10)
  /// A failure of reading, or of the account store, counts once it lasts for so long: one error is Kafka's daily business.
  package static let patience = Duration.seconds(5)

  private var failure: (since: MonotonicTime, last: MonotonicTime, cause: String)?

  /// Nothing failed so far.
  package init() {}

  /// Reading has failed. Returns whether that is news: another failure than the last one, or a new one.
  @discardableResult
  package mutating func failed(_ cause: String, at now: MonotonicTime) -> Bool {
    let last = failure.flatMap { now - $0.last < Self.pause ? $0 : nil }
    failure = (last?.since ?? now, now, cause)
    return last?.cause != cause
  }

  /// Reading has brought something.
  package mutating func succeeded() { failure = nil }

  /// How it is with a member, or with somebody who is none.
  package func state(isMember: Bool, at now: MonotonicTime) -> Readiness.State {
    let current = failure.flatMap { now - $0.last < Self.pause ? $0 : nil }
    guard isMember else {
      return .notReady(cause: "not in the group" + (current.map { ": \($0.cause)" } ?? ""))
    }
    guard let current, now - current.since >= Self.patience else { return .ready }
    return .notReady(cause: current.cause)
  }
}
