/// What was done about an event: for applications that follow, and for whoever has to prove it. No personal data: the
/// account appears as its keyed hash, and who knows the event knows whose it is.
public struct AccountOutcome: Sendable, Hashable {
  /// What was done.
  public enum Name: String, Sendable, Hashable, CaseIterable {
    /// The tokens that were held are gone; where the deletion began with us, they are revoked at Apple too.
    case tokensRevoked = "tokens-revoked"
    /// Apple was asked to revoke, and nothing shows that it did: there was an access token alone, and that may have been
    /// dead. `tokens-revoked` follows where Apple tells of it; where it does not, this is as `no-token`.
    case revocationUnproven = "revocation-unproven"
    /// There was no token to end. Where the deletion began with us, the person has to end the authorization at Apple.
    case noToken = "no-token"
    /// Whoever holds sessions of the account's is to end them.
    case sessionsEnded = "sessions-ended"
    /// The targets that the operator's policy names for the cause are erased or retained, all of them. After a withdrawn
    /// consent that may be a part of what is held: `targets` says which, and only a deletion erases the account.
    case accountErased = "account-erased"
    /// Mail to the account may be sent now, or may not any more.
    case relayChanged = "relay-changed"
    /// The app has changed teams, and the account's person with it: mail to them goes to another account from now on, or has
    /// come to this one.
    case accountTransferred = "account-transferred"
    /// Nothing was done: `reason` says why. Every event that one of siwa's consumers has settled has an outcome of it, but
    /// for those that a version before this one settled without an effect. Other consumers may announce nothing.
    case noEffect = "no-effect"
  }

  /// Why nothing was done about an event.
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// An event that outweighs it had been applied.
    case supersededByNewerEvent = "superseded-by-newer-event"
    /// The account had been erased since it happened.
    case supersededByErasure = "superseded-by-erasure"
    /// The person had signed in since it happened.
    case supersededByNewerSignIn = "superseded-by-newer-sign-in"
    /// Apple told of what we had revoked ourselves.
    case echo
    /// All tokens that were held of the apps in question came from a later sign-in.
    case newerSignIn = "newer-sign-in"
    /// The team's policy names no target for such an event.
    case nothingToErase = "nothing-to-erase"
  }

  /// The event that it followed from.
  public struct Cause: Sendable, Hashable {
    /// The event's id.
    public let id: EventID
    /// What happened, as records call it: `account-delete`.
    public let type: String
    /// When it happened.
    public let occurredAt: Timestamp

    /// A cause from its parts.
    public init(id: EventID, type: String, occurredAt: Timestamp) {
      (self.id, self.type, self.occurredAt) = (id, type, occurredAt)
    }

    /// The event as a cause.
    public init(_ event: AccountEvent) {
      self.init(id: event.id, type: event.kind.name, occurredAt: event.occurredAt)
    }
  }

  /// What became of one target of an erasure.
  public struct Target: Sendable, Hashable {
    /// The target as the operator named it.
    public let name: String
    /// `erased`, `retained`, or `discarded` where an operator has decided that nothing more is to be erased there.
    public let state: String
    /// How many rows or records there were, how many were erased, and how many were found afterwards; nil where the
    /// target cannot count.
    public let before, affected, after: Int64?
    /// Of a discarded target: who decided so, and why, in at most 1,000 characters; nil of any other.
    public let note: String?

    /// A target's outcome from its parts.
    public init(
      name: String, state: String, before: Int64?, affected: Int64?, after: Int64?, note: String? = nil
    ) {
      (self.name, self.state, self.before, self.affected, self.after) = (name, state, before, affected, after)
      self.note = note
    }
  }

  /// The account.
  public let account: AccountHash
  /// What was done.
  public let name: Name
  /// Why nothing was done; nil of every outcome but `no-effect`.
  public let reason: Reason?
  /// What it followed from.
  public let cause: Cause
  /// Which consumer did it, such as `data-eraser`.
  public let consumer: String
  /// When it was done.
  public let doneAt: Timestamp
  /// Of an erasure: its targets in their order. Empty for everything else.
  public let targets: [Target]

  /// An outcome from its parts.
  public init(
    account: AccountHash, name: Name, reason: Reason? = nil, cause: Cause, consumer: String, doneAt: Timestamp,
    targets: [Target] = []
  ) {
    (self.account, self.name, self.reason, self.cause) = (account, name, reason, cause)
    (self.consumer, self.doneAt, self.targets) = (consumer, doneAt, targets)
  }
}
