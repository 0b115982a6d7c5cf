public import AccountEvents
public import AccountStore
import EventLoop
package import Kafka

/// What does something about account events, each exactly once: the part of a service that is its own.
///
/// `ConsumerService` does the rest. It reads the topic in the consumer's group, keeps the events of one account in their
/// order, tries again what fails, and writes effect, ledger and fence in one transaction before Kafka is told.
public struct EventConsumer: Sendable {
  /// Looks at what happened and says what is to be written. It may wait for whatever lies outside, and is asked again
  /// where it throws: with the same event, so whatever it does outside must bear being done twice.
  public typealias Process = @Loop @Sendable (Delivery) async throws -> Decision
  /// The same where nothing outside is needed.
  public typealias Decide = @Loop @Sendable (Delivery) throws -> Decision

  /// What it is called: its group, its rows in the ledger, its topics and its metrics bear this name.
  public let name: ConsumerName
  /// Every outcome that a decision of its may name.
  public let outcomes: [String]
  /// What an event is to it; nil where it has nothing to do with it.
  let interest: @Sendable (AccountEvent) -> Interest?
  let work: Work
  /// Looks at an event that something else has made void, before that is noted. Where it throws, it is not noted: what
  /// `process` throws means the same here. Nil where there is nothing to look at, and for consumers that are `local`.
  package var lookAtVoid: (@Loop @Sendable (Delivery, Supersession) async throws -> Void)?
  /// What follows from an event, by what the ledger says of it: the same whenever it is asked, since it is asked again
  /// where a process ended before all was said. It is asked about the consumer's own outcomes alone. Nil where nothing
  /// is ever announced, not even that an event was void.
  package var announce: Announce?
  /// Throws where an event is not to be believed, before anything is done about it or noted of it; what it throws means
  /// the same as what `process` throws. Nil where the topic is believed.
  package var verify: (@Loop @Sendable (ConsumedRecord, Delivery) throws(ConsumerFailure) -> Void)?
  /// Which events `verify` is asked about; the topic is believed in the others, unless they are ahead of their time.
  package var verifies: @Sendable (AccountEvent) -> Bool = { _ in true }
  /// What is true now of the keys of a compacted topic that it announces on. Nil where the order of its announcements
  /// does not matter, as of outcomes.
  package var compacted: Compacted?

  package typealias Announce = @Sendable (AccountEvent, AccountHash, LedgerEntry) -> [Announcement]

  /// A topic of which the last record of each key counts.
  package struct Compacted: Sendable {
    /// The topic.
    package let topic: Topic
    /// Says what the last record of each announcement's key is to be: the announcement itself, where nothing is newer.
    package let restate: @Loop @Sendable ([Announcement]) async throws(AccountStoreError) -> [Announcement]
    /// Whether what an event leads to is not known from the event, and is what is true by then.
    package var isComposed: @Sendable (AccountEvent) -> Bool = { _ in false }

    /// A topic, and what is true of its keys.
    package init(
      _ topic: Topic,
      restate: @escaping @Loop @Sendable ([Announcement]) async throws(AccountStoreError) -> [Announcement]
    ) { (self.topic, self.restate) = (topic, restate) }
  }

  enum Work: Sendable {
    case outside(Process)
    case local(Decide)
  }

  /// A consumer that does something outside of the store, such as a call to another service.
  ///
  /// Before `process` is called, the store is asked whether there is anything left to do.
  public init(
    _ name: ConsumerName, outcomes: [String], interest: @escaping @Sendable (AccountEvent) -> Interest?,
    process: @escaping Process
  ) {
    self.init(name: name, outcomes: outcomes, interest: interest, work: .outside(process))
  }

  /// A consumer whose effect lies in the store alone: `decide` only computes it, and may be called for events that turn
  /// out to be settled. Its decisions are written in large groups.
  public static func local(
    _ name: ConsumerName, outcomes: [String], interest: @escaping @Sendable (AccountEvent) -> Interest?,
    decide: @escaping Decide
  ) -> EventConsumer { EventConsumer(name: name, outcomes: outcomes, interest: interest, work: .local(decide)) }

  /// Whether an event that something has made void is looked at before that is noted.
  var looksAtVoid: Bool { lookAtVoid != nil || verify != nil }

  /// What follows from an event, by what the ledger says of it: of one that was void, why nothing was done.
  func announcements(_ event: AccountEvent, _ account: AccountHash, _ entry: LedgerEntry) -> [Announcement] {
    guard let announce else { return [] }
    if outcomes.contains(entry.outcome) { return announce(event, account, entry) }
    // What only another version of the consumer has done, that one announces.
    guard let supersession = Supersession(outcome: entry.outcome) else { return [] }
    return [
      Announcement(AccountOutcome.Reason(supersession), of: event, account, by: name, at: entry.at)
    ]
  }

  private init(
    name: ConsumerName, outcomes: [String], interest: @escaping @Sendable (AccountEvent) -> Interest?, work: Work
  ) { (self.name, self.outcomes, self.interest, self.work) = (name, outcomes, interest, work) }
}
