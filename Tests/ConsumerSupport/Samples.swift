package import AccountEvents
package import AccountStore
package import Kafka

extension TopicPartition {
  /// A partition of the account events.
  package static func events(_ partition: Int32) -> TopicPartition {
    TopicPartition(Topic.accountEvents.name, partition)
  }
}

extension Timestamp {
  /// A time that there is.
  package static func sample(_ milliseconds: Int64) -> Timestamp {
    guard let time = Timestamp(milliseconds: milliseconds) else { preconditionFailure("\(milliseconds) is no time") }
    return time
  }
}

extension AccountEvent {
  /// Something that happened to `user`, later with a higher number.
  package static func sample(_ number: Int, of user: String = "ada", _ kind: Kind = .consentRevoked) -> AccountEvent {
    guard let id = EventID("event-\(number)"), let team = TeamID("A1B2C3D4E5"), let subject = AppleSubject(user),
      let audience = ClientID("com.example.app")
    else { preconditionFailure("the sample is well-formed") }
    return AccountEvent(
      id: id, team: team, audience: audience, subject: subject, kind: kind,
      occurredAt: .sample(1_700_000_000_000 + Int64(number)), issuedAt: .sample(1_700_000_005_000 + Int64(number)))
  }
}

extension KafkaRecord {
  /// The record of an event.
  package static func of(_ event: AccountEvent) -> KafkaRecord {
    let record = EventRecord(event, jws: nil)
    return KafkaRecord(
      topic: record.topic.name, key: record.key, value: record.value,
      headers: record.headers.map { KafkaHeader($0.name, $0.value) })
  }
}

extension EventReference {
  /// The event with the weight of a withdrawn consent, at the first place of its topic, unless it is said otherwise.
  package static func of(
    _ event: AccountEvent, _ store: any AccountStore,
    at origin: EventOrigin = EventOrigin(topic: Topic.accountEvents.name, partition: 0, offset: 0), severity: Int = 1,
    yieldsTo: Set<EventPrecedence> = [.signIn]
  ) -> EventReference {
    EventReference(
      id: event.id, account: event.account, hash: store.hash(of: event.account), occurredAt: event.occurredAt,
      origin: origin, weight: EventWeight(severity: severity, tie: 0), yieldsTo: yieldsTo)
  }
}
