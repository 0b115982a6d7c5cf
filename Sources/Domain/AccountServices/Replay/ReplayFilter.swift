package import AccountEvents
package import Kafka

/// Which records of a topic are replayed: those that are of an account, an event and a type at once, where these are named.
package struct ReplayFilter: Sendable, Hashable {
  /// The keys of the account's records: `TEAM/SUB`, or on the topic of outcomes its keyed hash.
  package var keys: Set<[UInt8]>?
  /// The event.
  package var event: EventID?
  /// The type, in our words.
  package var type: String?

  /// Those that are all of these; nil stands for any.
  package init(keys: Set<[UInt8]>?, event: EventID?, type: String?) {
    (self.keys, self.event, self.type) = (keys, event, type)
  }

  /// Whether it lets a record of that topic through.
  package func lets(_ record: ConsumedRecord, of topic: ReplayedTopic) -> Bool {
    if let keys, record.key.map({ keys.contains($0) }) != true { return false }
    if event == nil, type == nil { return true }
    let facts = topic.facts(of: record)
    return (event == nil || facts.event == event) && (type == nil || facts.type == type)
  }
}
