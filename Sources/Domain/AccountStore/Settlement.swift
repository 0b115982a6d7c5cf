package import AccountEvents

/// What a consumer has decided about an event, to be written at once.
package struct Settlement: Sendable {
  /// The event.
  package let event: EventReference
  /// Whose decision it is.
  package let consumer: ConsumerName
  /// What was done, in a word of the consumer's closed list, such as `tokens-revoked` or `no-token`; nil where nothing is
  /// decided, and the event is only to be noted as void.
  package let outcome: String?
  /// What the ledger keeps of it beside the outcome, for announcements to be composed from, again after a restart: of an
  /// erasure its targets. No personal data; mostly empty.
  package let detail: String
  /// What changes in the store.
  package let changes: [StoreChange]
  /// Steps of an erasure that are recorded in the same transaction: they have happened, whatever becomes of the decision.
  package let steps: [ErasureStep]

  /// A decision from its parts.
  package init(
    of event: EventReference, by consumer: ConsumerName, outcome: String, detail: String = "", changes: [StoreChange],
    steps: [ErasureStep] = []
  ) {
    (self.event, self.consumer, self.outcome) = (event, consumer, outcome)
    (self.detail, self.changes, self.steps) = (detail, changes, steps)
  }

  /// The note that something has made the event void. Where nothing has, or not any more, it changes nothing.
  package init(ofVoid event: EventReference, by consumer: ConsumerName) {
    (self.event, self.consumer, outcome) = (event, consumer, nil)
    (detail, changes, steps) = ("", [], [])
  }

  private init(_ other: Settlement, about event: EventReference) {
    (self.event, consumer, outcome) = (event, other.consumer, other.outcome)
    (detail, changes, steps) = (other.detail, other.changes, other.steps)
  }

  /// The same decision with another reference to its event.
  func about(_ event: EventReference) -> Settlement { Settlement(self, about: event) }
}

/// A change of what is known of the event's account.
package enum StoreChange: Sendable, Hashable {
  /// Mail to the account is as the event says.
  case setRelay(RelayState)
  /// Nothing is known of mail to the account any more.
  case removeRelay
  /// Its tokens issued up to this time are deleted, and not kept where they become known later: those of these apps; nil
  /// is all of them.
  case endTokens(issuedUpTo: Timestamp, of: Set<ClientID>? = nil)
  /// We have revoked an authorization at Apple ourselves, at the time of the event or before: the `consent-revoked` that
  /// follows is an echo.
  case noteOwnRevocation(of: ClientID, isProven: Bool)
  /// What is kept of the account from until the event is deleted, and its data key; the keyed hash stays as a fence, with
  /// the event's time. What is younger goes on under a new data key. `isFinal`: the Apple Account itself is gone, so that
  /// only a sign-in makes anything younger.
  case eraseAccount(isFinal: Bool)
  /// The account counts as erased since the event, though nothing is deleted: for a consumer that has forgotten its part,
  /// before the others have. `isFinal`: the Apple Account itself is gone.
  case fenceAccount(isFinal: Bool)
  /// Where the person came to another account with one of these apps, when that changed teams: an event of our own says the
  /// same of that one, as of the same moment. Nil is whatever app.
  case tellSuccessor(AccountEvent.Kind, of: Set<ClientID>?)
  /// Mail to the account is as an event of this app says. Where the person came to another account with that app, when it
  /// changed teams, mail to that one is so as well, at its own address, unless it is known of a later moment how it is; and an
  /// event of our own says so.
  case tellSuccessorOfMail(RelayState, of: ClientID)
  /// Where the person came to this account with one of these apps, when that changed teams, nil is whatever app: at the
  /// account of before, the tokens of that app and of the apps of `ending` are deleted that were issued until the event, and
  /// not kept where they become known later; nil is all tokens. Where a token of no other app is held there, an event of our
  /// own says the same of that account, as of the same moment.
  case tellPredecessor(AccountEvent.Kind, of: Set<ClientID>?, ending: Set<ClientID>?)
}

/// An attempt that has failed and is to be counted.
package struct FailedAttempt: Sendable, Hashable {
  /// The event that could not be processed.
  package let event: EventReference
  /// Who tried.
  package let consumer: ConsumerName
  /// Why it failed, in a word of a closed list.
  package let cause: String
  /// When.
  package let time: Timestamp

  /// A failed attempt from its parts.
  package init(at event: EventReference, by consumer: ConsumerName, cause: String, time: Timestamp) {
    (self.event, self.consumer, self.cause, self.time) = (event, consumer, cause, time)
  }
}
