/// Whether mail to an account may be sent, as Apple said last.
public struct RelayState: Sendable, Hashable {
  /// What Apple said.
  public enum Status: String, Sendable, Hashable, CaseIterable {
    /// Mail is forwarded.
    case enabled
    /// The person has switched forwarding off.
    case disabled
  }

  /// What Apple said.
  public let status: Status
  /// The address; nil where only other events spoke of the account.
  public let address: RelayAddress?
  /// Whether the address is one of Apple's private relay.
  public let isPrivate: Bool
  /// When it happened (`event_time`).
  public let since: Timestamp

  /// A state from its parts.
  public init(status: Status, address: RelayAddress?, isPrivate: Bool, since: Timestamp) {
    (self.status, self.address, self.isPrivate, self.since) = (status, address, isPrivate, since)
  }
}
