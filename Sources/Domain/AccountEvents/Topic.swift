/// A topic that account events stand on. Its name ends with the major version of what it holds.
public struct Topic: Sendable, Hashable, CustomStringConvertible {
  /// The name in Kafka.
  public let name: String

  /// All events of all accounts, keyed by `team/sub`, so that one account's events stay in order across their types.
  public static let accountEvents = Topic(name: "apple.account-events.v1")
  /// What Apple signed and cannot be acted on, keyed by `QuarantinedEvent.key` and compacted: until a person decides.
  public static let quarantine = Topic(name: "apple.account-events.quarantine.v1")
  /// Every key of Apple's that ever verified something, keyed by `kid` and compacted: old records still verify.
  public static let signingKeys = Topic(name: "apple.signing-keys.v1")
  /// What was done about an event, by whom and when, keyed by the account's keyed hash: no personal data, kept forever.
  public static let outcomes = Topic(name: "apple.account-outcomes.v1")
  /// Whether mail to an account may be sent, keyed by `team/sub` and compacted; a tombstone once it was erased.
  public static let emailRelay = Topic(name: "apple.email-relay.v1")

  /// The topic of that name.
  package init(name: String) { self.name = name }

  /// The name in Kafka.
  public var description: String { name }
}
