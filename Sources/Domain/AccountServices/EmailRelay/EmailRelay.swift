package import AccountEvents
package import AccountStore

/// Keeps whether mail to an account may be sent: what happened last decides, whatever arrives when.
package struct EmailRelay: Sendable {
  private let hash: @Sendable (Account) -> AccountHash
  private let now: @Sendable () -> Timestamp

  /// `hash` makes the keyed hash that stands for an account in outcomes.
  package init(hash: @escaping @Sendable (Account) -> AccountHash, now: @escaping @Sendable () -> Timestamp) {
    (self.hash, self.now) = (hash, now)
  }

  /// The consumer `email-relay`.
  package var consumer: EventConsumer {
    EventConsumer.local(
      .emailRelay, outcomes: Outcome.allCases.map(\.rawValue), interest: Self.interest, decide: decide)
  }

  /// What was done.
  enum Outcome: String, CaseIterable {
    case kept = "state-kept"
    case forgotten = "state-forgotten"
  }

  /// E-mail events and withdrawn consents yield to each other by time, and of one moment to the one that takes more away.
  /// A deletion covers them all, whenever they happened, up to the next sign-in: none brings back who is gone.
  @Sendable private static func interest(in event: AccountEvent) -> Interest? {
    switch event.kind {
    case .emailEnabled: Interest(severity: 0, tie: 0, yieldsTo: [.erasure])
    case .emailDisabled: Interest(severity: 0, tie: 1, yieldsTo: [.erasure])
    case .consentRevoked: Interest(severity: 0, tie: 2, yieldsTo: [])
    case .accountDeletionRequested: Interest(severity: 1, tie: 0, yieldsTo: [.signIn])
    case .accountDelete: Interest(severity: 1, tie: 1, yieldsTo: [.signIn])
    }
  }

  private func decide(_ delivery: Delivery) -> Decision {
    let event = delivery.event
    let outcome = Announcement(
      AccountOutcome(
        account: hash(event.account), name: .relayChanged, cause: AccountOutcome.Cause(event),
        consumer: ConsumerName.emailRelay.text, doneAt: now()))
    guard let state = RelayState(event) else {
      let isGone = event.kind != .consentRevoked
      return Decision(
        Outcome.forgotten.rawValue, changes: [.removeRelay] + (isGone ? [.fenceAccount(isFinal: true)] : []),
        announcements: [Announcement(forgettingRelayOf: event.account), outcome])
    }
    let record = RelayRecord(account: event.account, state: state, event: event.id)
    return Decision(
      Outcome.kept.rawValue, changes: [.setRelay(state)], announcements: [Announcement(record), outcome])
  }
}

extension ConsumerName {
  /// The consumer that keeps whether mail may be sent.
  package static let emailRelay: ConsumerName = "email-relay"
  /// The consumer that erases.
  package static let dataEraser: ConsumerName = "data-eraser"
  /// The consumer that ends tokens.
  package static let tokenRevoker: ConsumerName = "token-revoker"
}

extension RelayState {
  /// The state after an event; nil after one that leaves none.
  fileprivate init?(_ event: AccountEvent) {
    let since = event.occurredAt
    switch event.kind {
    case .emailEnabled(let address, let isPrivate):
      self.init(status: .enabled, address: address, isPrivate: isPrivate, since: since)
    case .emailDisabled(let address, let isPrivate):
      self.init(status: .disabled, address: address, isPrivate: isPrivate, since: since)
    // Unknown is not enabled, so nothing has to be kept to forbid. The echo of our own revocation comes after an erasure
    // and must not bring the person back.
    case .consentRevoked, .accountDelete, .accountDeletionRequested: return nil
    }
  }
}
