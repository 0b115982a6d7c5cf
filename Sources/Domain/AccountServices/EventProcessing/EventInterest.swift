package import AccountEvents
package import AccountStore

/// What events are to a consumer of the house.
package struct EventInterest: Sendable {
  /// The consumer.
  package let name: ConsumerName
  /// What an event is to it; nil where it has nothing to do with it.
  package let interest: @Sendable (AccountEvent) -> Interest?

  /// Those of all consumers of the house. `groups` say which apps share a person's consent.
  package static func all(_ groups: ConsentGroups) -> [EventInterest] {
    [
      EventInterest(name: .tokenRevoker) { TokenRevoker.interest(in: $0, groups) },
      EventInterest(name: .dataEraser, interest: DataEraser.interest),
      EventInterest(name: .emailRelay, interest: EmailRelay.interest),
    ]
  }
}
