import AccountEvents
package import AccountStore

/// Keeps whether mail to an account may be sent: what happened last decides, whatever arrives when.
package enum EmailRelay {
  /// The consumer `email-relay`. What it has to announce again is what `store` says then.
  package static func consumer(_ store: any AccountStore) -> EventConsumer {
    var consumer = EventConsumer.local(
      .emailRelay, outcomes: Outcome.allCases.map(\.rawValue), interest: interest, decide: decide)
    consumer.announce = announce
    consumer.compacted = EventConsumer.Compacted(.emailRelay) { announcements throws(AccountStoreError) in
      try await restate(announcements, from: store)
    }
    // The store has moved the state when it wrote the event, which says nothing of it.
    consumer.compacted?.isComposed = { $0.kind == .accountTransferred }
    return consumer
  }

  /// What was done.
  enum Outcome: String, CaseIterable {
    case kept = "state-kept"
    case forgotten = "state-forgotten"
    case transferred = "state-transferred"
  }

  /// E-mail events and withdrawn consents yield to each other by time, and of one moment to the one that takes more away.
  /// A deletion covers them all, whenever they happened, up to the next sign-in: none brings back who is gone.
  @Sendable static func interest(in event: AccountEvent) -> Interest? {
    switch event.kind {
    case .emailEnabled: Interest(.ofMail(.enabled), yieldsTo: [.erasure])
    case .emailDisabled: Interest(.ofMail(.disabled), yieldsTo: [.erasure])
    case .consentRevoked: Interest(severity: 0, tie: 2, yieldsTo: [])
    // As of the sign-in that is over: what Apple told of mail since then is over, too, up to the next sign-in.
    case .credentialInvalid: Interest(EventWeight(severity: 1, tie: 0, covers: 0), yieldsTo: [.signIn])
    // Nothing makes it void, and it makes nothing void: it only says what the store knows by then.
    case .accountTransferred: Interest(EventWeight(severity: 2, tie: 0, covers: nil), yieldsTo: [])
    case .accountDeletionRequested: Interest(severity: 1, tie: 0, yieldsTo: [.signIn])
    case .accountDelete: Interest(severity: 1, tie: 1, yieldsTo: [.signIn])
    }
  }

  /// Whether an event is of somebody who is gone. The fence that it leaves holds for all consumers, and until the person
  /// signs in again; so it has to be proven, although no other event is unless the configuration says so.
  @Sendable static func isFinal(_ event: AccountEvent) -> Bool {
    switch event.kind {
    case .accountDelete, .accountDeletionRequested: true
    case .emailEnabled, .emailDisabled, .consentRevoked, .credentialInvalid, .accountTransferred: false
    }
  }

  @Sendable private static func decide(_ delivery: Delivery) -> Decision {
    let event = delivery.event
    if event.kind == .accountTransferred { return Decision(Outcome.transferred.rawValue) }
    guard let state = RelayState(event) else {
      return Decision(
        Outcome.forgotten.rawValue,
        changes: isFinal(event) ? [.removeRelay, .fenceAccount(isFinal: true)] : [.removeRelay])
    }
    return Decision(
      Outcome.kept.rawValue, changes: [.setRelay(state), .tellSuccessorOfMail(state, of: event.audience)])
  }

  @Sendable private static func announce(
    _ event: AccountEvent, _ account: AccountHash, _ entry: LedgerEntry
  ) -> [Announcement] {
    let outcome = Announcement(
      AccountOutcome(
        account: account, name: event.kind == .accountTransferred ? .accountTransferred : .relayChanged,
        cause: AccountOutcome.Cause(event),
        consumer: ConsumerName.emailRelay.text, doneAt: entry.at))
    guard let state = RelayState(event) else { return [Announcement(forgettingRelayOf: event.account), outcome] }
    return [Announcement(RelayRecord(account: event.account, state: state, event: event.id)), outcome]
  }
}

extension ConsumerName {
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
    case .consentRevoked, .accountDelete, .accountDeletionRequested, .credentialInvalid, .accountTransferred: return nil
    }
  }
}
