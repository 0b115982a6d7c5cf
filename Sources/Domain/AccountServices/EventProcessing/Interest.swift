public import AccountStore

/// What an event is to a consumer that has something to do about it.
public struct Interest: Sendable, Hashable {
  /// How it compares with others of its account.
  public let weight: EventWeight
  /// What else makes it void.
  public let yieldsTo: Set<EventPrecedence>

  /// An event of that severity (0 to 100), which is void once one of at least the same severity was applied that
  /// happened later, or at the same moment with the higher `tie`; or once there was what it yields to.
  public init(severity: Int, tie: Int = 0, yieldsTo: Set<EventPrecedence>) {
    self.init(EventWeight(severity: severity, tie: tie), yieldsTo: yieldsTo)
  }

  /// An event of that weight.
  package init(_ weight: EventWeight, yieldsTo: Set<EventPrecedence>) {
    (self.weight, self.yieldsTo) = (weight, yieldsTo)
  }
}
