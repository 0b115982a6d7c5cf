package import AccountEvents

/// A deletion that a person has asked for in an app. Nothing of it names the person: it is kept when they are erased.
package struct Deletion: Sendable, Hashable {
  /// Its id, which is that of the event that announces it.
  package let id: EventID
  /// The account, by its keyed hash.
  package let account: AccountID
  /// The team of the app.
  package let team: TeamID
  /// The app in which it was asked for.
  package let client: ClientID
  /// When: what was signed in until then is ended, and what comes later is not touched. Never before a sign-in that was
  /// known by then, whatever Apple's clock said of it. What was under way then counts as begun until then, whatever the clock
  /// said that it was begun by.
  package let requestedAt: Timestamp
  /// Whether the store held a token that the authorization can be ended with.
  package let hadTokens: Bool

  /// A deletion from its parts.
  package init(
    id: EventID, account: AccountID, team: TeamID, client: ClientID, requestedAt: Timestamp, hadTokens: Bool
  ) {
    (self.id, self.account, self.team, self.client) = (id, account, team, client)
    (self.requestedAt, self.hadTokens) = (requestedAt, hadTokens)
  }

  /// The event that announces it.
  func event(of account: Account) -> AccountEvent {
    AccountEvent(
      id: id, team: account.team, audience: client, subject: account.subject, kind: .accountDeletionRequested,
      occurredAt: requestedAt, issuedAt: requestedAt)
  }
}

/// How far a deletion is.
package struct DeletionProgress: Sendable, Hashable {
  /// What was asked for.
  package let deletion: Deletion
  /// Whether its event is on the topic.
  package let isPublished: Bool
  /// What consumers have done about it, of those that were asked for and have.
  package let entries: [ConsumerName: LedgerEntry]
  /// How far the targets of the erasure are.
  package let steps: [ErasureStep]

  /// Its parts.
  package init(
    _ deletion: Deletion, isPublished: Bool, entries: [ConsumerName: LedgerEntry], steps: [ErasureStep]
  ) {
    (self.deletion, self.isPublished, self.entries, self.steps) = (deletion, isPublished, entries, steps)
  }
}

/// A deletion that is not over.
package struct OpenDeletion: Sendable, Hashable {
  /// When it was asked for.
  package let requestedAt: Timestamp
  /// Whether its event is on the topic.
  package let isPublished: Bool
  /// Whether the authorization was seen to.
  package let isRevoked: Bool
  /// Whose account it is.
  let account: AccountID

  /// A deletion from its parts.
  init(_ account: AccountID, requestedAt: Timestamp, isPublished: Bool, isRevoked: Bool) {
    (self.account, self.requestedAt, self.isPublished, self.isRevoked) = (account, requestedAt, isPublished, isRevoked)
  }

  /// Whether it is over by what has become of its account, though nobody has settled its event: somebody else has had all of
  /// it erased, or the person has signed in again. A fence alone is there before the account is erased.
  func isOver(_ account: AccountFacts) -> Bool {
    let isErased = account.key == nil && account.erasure.map { $0.isFinal && $0.at >= requestedAt } ?? false
    return isErased || account.lastSignIn.map { $0 > requestedAt } ?? false
  }
}

/// What a database knows that bears on a request for a deletion.
struct DeletionFacts {
  /// The account.
  var account = AccountFacts()
  /// The sign-in of the youngest token that is held.
  var newestToken: Timestamp?
  /// The last deletion that was asked for.
  var last: Deletion?

  /// What becomes of a request.
  enum Judgement {
    /// There is no such account.
    case nothing
    /// It was asked for before, and nobody has signed in since, or by this very request.
    case same(Deletion)
    /// It is to be written.
    case new(Deletion)
  }

  /// The one judgement.
  func judgement(
    of request: EventID, _ account: Account, _ id: AccountID, in client: ClientID, at time: Timestamp
  ) -> Judgement {
    if let last, last.id == request || !(self.account.lastSignIn.map { $0 > last.requestedAt } ?? false) {
      return .same(last)
    }
    guard self.account.key != nil else { return .nothing }
    let times = [time, self.account.lastSignIn, newestToken].compactMap(\.self)
    return .new(
      Deletion(
        id: request, account: id, team: account.team, client: client, requestedAt: times.max() ?? time,
        hadTokens: newestToken != nil))
  }
}
