package import AccountEvents

/// What the store has to know of an event to say whether it still counts.
package struct EventReference: Sendable, Hashable {
  /// Its id, which the ledger remembers.
  package let id: EventID
  /// Whom it happened to.
  package let account: Account
  /// The account's keyed hash, as `AccountStore.hash(of:)` makes it: once for each event, as it costs more than a look-up.
  /// The store makes it anew where the hashing key was replaced since.
  package let hash: AccountHash
  /// When it happened.
  package let occurredAt: Timestamp
  /// Where it stood on Kafka.
  package let origin: EventOrigin
  /// What it outweighs, for the consumer in question.
  package let weight: EventWeight
  /// What else makes it void, for the consumer in question.
  package let yieldsTo: Set<Precedence>

  /// What beside a weightier event may have made an event void.
  package typealias Precedence = EventPrecedence

  /// A reference from its parts.
  package init(
    id: EventID, account: Account, hash: AccountHash, occurredAt: Timestamp, origin: EventOrigin, weight: EventWeight,
    yieldsTo: Set<Precedence>
  ) {
    (self.id, self.account, self.hash) = (id, account, hash)
    (self.occurredAt, self.origin) = (occurredAt, origin)
    (self.weight, self.yieldsTo) = (weight, yieldsTo)
  }

  /// The same event with another hash of its account.
  func hashed(_ hash: AccountHash) -> EventReference {
    EventReference(
      id: id, account: account, hash: hash, occurredAt: occurredAt, origin: origin, weight: weight, yieldsTo: yieldsTo)
  }
}

/// What beside a weightier event may make an event void.
public enum EventPrecedence: Sendable, Hashable {
  /// A sign-in after it happened: it speaks of an authorization that is over.
  case signIn
  /// An erasure: of everything until then, and where the Apple Account itself is gone, of everything after it too, up
  /// to the next sign-in.
  case erasure
}

/// Where an event stood on Kafka when it was processed.
package struct EventOrigin: Sendable, Hashable {
  /// The topic: that of the account events, or a consumer's own for retried dead letters.
  package let topic: String
  /// The partition.
  package let partition: Int32
  /// The offset.
  package let offset: Int64

  /// A place in a topic.
  package init(topic: String, partition: Int32, offset: Int64) {
    (self.topic, self.partition, self.offset) = (topic, partition, offset)
  }

  /// The partition that it stood in.
  package var source: SourcePartition { SourcePartition(topic: topic, partition: partition) }
}

/// How an event compares with others of its account, for one consumer.
///
/// An event is void once one of at least its severity was applied that happened later; of two that happened in the same
/// millisecond, the one with the higher `tie` counts, so that both orders of arrival end alike.
public struct EventWeight: Sendable, Hashable {
  /// How much its effect takes away: a deletion covers what a withdrawn consent does, and not the reverse.
  public let severity: Int
  /// Decides between events of the same millisecond.
  public let tie: Int
  /// The severity up to which it makes others void once it was applied, mostly its own; nil where it makes none void.
  package let covers: Int?

  /// A weight; both from 0 to 100.
  public init(severity: Int, tie: Int) { self.init(severity: severity, tie: tie, covers: severity) }

  /// The weight of what says how mail to an account is: of one moment, what takes more away counts.
  package static func ofMail(_ status: RelayState.Status) -> EventWeight {
    EventWeight(severity: 0, tie: status == .disabled ? 1 : 0)
  }

  /// The weight of an event that covers less than what covers it, such as one that takes away a part of its own: all from
  /// 0 to 100.
  package init(severity: Int, tie: Int, covers: Int?) {
    precondition(0...100 ~= severity && 0...100 ~= tie && 0...severity ~= covers ?? 0)
    (self.severity, self.tie, self.covers) = (severity, tie, covers)
  }
}
