package import AccountEvents
package import AccountStore
package import EventLoop

/// Ends what is held of an authorization that is over; where the end began with us, ends it at Apple first.
@Loop
package final class TokenRevoker {
  /// How long Apple is given to agree with itself. It may throttle who validates a token more than once a day, so one is
  /// validated only after it was revoked, and not at once again.
  private static let pause = Duration.seconds(60)

  private static let untilEndOfSecond = Duration.milliseconds(999)

  private let apple: AppleRevocations
  private nonisolated let groups: ConsentGroups
  private let store: any AccountStore
  private let now: @Sendable () -> Timestamp

  /// A revoker of the tokens that are in the store.
  package init(
    _ apple: AppleRevocations, _ groups: ConsentGroups, store: any AccountStore,
    now: @escaping @Sendable () -> Timestamp = { .now }
  ) { (self.apple, self.groups, self.store, self.now) = (apple, groups, store, now) }

  /// The consumer `token-revoker`.
  package nonisolated var consumer: EventConsumer {
    var consumer = EventConsumer(
      .tokenRevoker, outcomes: Outcome.allCases.map(\.rawValue),
      interest: { [groups] event in Self.interest(in: event, groups) },
      process: { delivery in try await self.process(delivery) })
    consumer.announce = Self.announce
    return consumer
  }

  /// What was done.
  enum Outcome: String, CaseIterable {
    case revoked = "tokens-revoked"
    case unproven = "revocation-unproven"
    case noToken = "no-token"
    case echo = "echo"
    /// An echo that proves what nothing else did.
    case proven = "revocation-proven"
    case newerSignIn = "newer-sign-in"
  }

  /// The end of the Apple Account covers what a request for deletion does, and that what a withdrawn consent does; not the
  /// reverse. Consents that are withdrawn from apps of their own say nothing of each other, nor does a sign-in to another.
  nonisolated static func interest(in event: AccountEvent, _ groups: ConsentGroups) -> Interest? {
    switch event.kind {
    case .emailEnabled, .emailDisabled, .accountTransferred: nil
    case .consentRevoked where groups.isAboutSome(event), .credentialInvalid where groups.isAboutSome(event):
      Interest(EventWeight(severity: 2, tie: 0, covers: 0), yieldsTo: [])
    case .consentRevoked, .credentialInvalid: Interest(severity: 1, yieldsTo: [.signIn])
    case .accountDeletionRequested: Interest(severity: 2, yieldsTo: [.signIn])
    case .accountDelete: Interest(severity: 3, yieldsTo: [.signIn])
    }
  }

  /// Does what is to be done at Apple, and says what that came to. Only tokens count that were issued until the event
  /// happened: those of a later sign-in stand for another authorization.
  package func process(_ delivery: Delivery) async throws -> Decision {
    let event = delivery.event
    let clients = groups.clients(endedBy: event)
    if event.kind == .consentRevoked {
      var revocations = try await store.ownRevocations(of: event.account, among: clients)
      if !revocations.isEmpty {
        // What our request has ended at Apple was begun before it: once no sign-in is under way, it is known.
        try await waitForSignIns(of: event.account)
        revocations = try await store.ownRevocations(of: event.account, among: clients)
      }
      if !revocations.isEmpty { return try await echo(event, of: revocations, clients) }
    }
    // What was begun before a deletion ends with it: of that, all tokens have to be known before any is ended.
    if event.kind == .accountDeletionRequested { try await waitForSignIns(of: event.account) }
    let held = try await store.tokens(of: event.account)
    let tokens = held.filter { $0.isEnded(by: event, of: clients) }.map(\.token)
    if tokens.isEmpty, let clients, held.contains(where: { clients.contains($0.token.client) }) {
      return Decision(Outcome.newerSignIn.rawValue)
    }
    // Apple tells us that the authorization is over: its tokens are dead, and there is nothing to ask Apple for.
    guard event.kind == .accountDeletionRequested else {
      try await revokeWhatMayBeYounger(held, than: event, of: clients)
      return end(event, tokens.isEmpty ? .noToken : .revoked)
    }
    let authorizations = Dictionary(grouping: tokens, by: \.client).values.map(Authorization.init).sorted()
    try await revoke(authorizations, for: delivery)
    // A sign-in that was under way when the deletion was asked for: what is ended here and was not revoked lives on at Apple.
    let left = try await store.tokens(of: event.account).filter { $0.isEnded(by: event, of: clients) }.map(\.token)
    guard left.allSatisfy(tokens.contains) else { throw ConsumerFailure.waiting("overtaken", for: .zero) }
    let outcome: Outcome = authorizations.allSatisfy(\.isProvable) ? .revoked : .unproven
    return end(
      event, authorizations.isEmpty ? .noToken : outcome,
      noting: authorizations.map { .noteOwnRevocation(of: $0.client, isProven: $0.isProvable) })
  }

  // MARK: Apple

  /// Ends each authorization with each of its tokens: a revocation with one that was dead before ends nothing, and Apple
  /// does not say so. Asking again for what is done changes nothing.
  ///
  /// A revocation ends later sign-ins too. One that becomes known before the request is sent stops it. One that happens
  /// while the request is under way loses its tokens: Apple's `consent-revoked` for this is younger than that sign-in,
  /// stands behind this event, which is void now and noted no revocation, and ends what is held of the sign-in.
  private func revoke(_ authorizations: [Authorization], for delivery: Delivery) async throws {
    for token in authorizations.flatMap(\.revocable) {
      // Of a sign-in that is under way, Apple may have granted the token, and would end that with this one. One that comes
      // to its end between two looks is known, one that begins between them is under way.
      try await waitForSignIns(of: delivery.event.account)
      guard case .open = try await store.standings(of: [delivery.reference], for: .tokenRevoker).first else {
        throw ConsumerFailure.waiting("overtaken", for: .zero)
      }
      try await waitForSignIns(of: delivery.event.account)
      try await apple.revoke(token)
    }
    // All of them are revoked first, so that a failure on the way has validated none.
    for token in authorizations.filter(\.isProvable).flatMap(\.revocable) {
      guard try await apple.isInvalid(token) else {
        throw ConsumerFailure.transient("still-valid", retryAfter: Self.pause)
      }
    }
  }

  /// Apple tells when somebody signed in in whole seconds: a token of the event's second may be of a new authorization, which
  /// nobody could end any more once it is forgotten. What we have found ourselves has the very time of its sign-in.
  ///
  /// Where a later sign-in to one of these apps is held, it is in force, and Apple would end that: then nothing is revoked.
  private func revokeWhatMayBeYounger(
    _ held: [StoredToken], than event: AccountEvent, of clients: Set<ClientID>?
  ) async throws {
    guard event.kind != .credentialInvalid else { return }
    var revoked: Set<NewToken> = []
    var left = Self.tokensThatMayBeYounger(held, than: event, of: clients)
    while !left.isEmpty {
      try await waitForSignIns(of: event.account)
      // As above.
      left = Self.tokensThatMayBeYounger(try await store.tokens(of: event.account), than: event, of: clients)
        .filter { !revoked.contains($0) }
      guard let token = left.popLast() else { return }
      try await waitForSignIns(of: event.account)
      try await apple.revoke(token)
      revoked.insert(token)
    }
  }

  private static func tokensThatMayBeYounger(
    _ held: [StoredToken], than event: AccountEvent, of clients: Set<ClientID>?
  ) -> [NewToken] {
    let concerned = held.filter { clients?.contains($0.token.client) ?? true }
    guard concerned.allSatisfy({ $0.isEnded(by: event, of: clients) }) else { return [] }
    return concerned.filter { $0.issuedAt + untilEndOfSecond >= event.occurredAt }.map(\.token)
  }

  private func waitForSignIns(of account: Account) async throws {
    guard try await store.isSignInUnderWay(of: account, at: now()) else { return }
    throw ConsumerFailure.waiting("sign-in-under-way", for: .milliseconds(500))
  }

  // MARK: Decisions

  private func end(_ event: AccountEvent, _ outcome: Outcome, noting revocations: [StoreChange] = []) -> Decision {
    let ending = StoreChange.endTokens(issuedUpTo: event.occurredAt, of: groups.clients(endedBy: event))
    return Decision(outcome.rawValue, changes: [ending] + .tellingRelatives(of: event, groups) + revocations)
  }

  /// What follows from our own revocation: all of it was done and said, but that Apple has ended what nothing else proves.
  ///
  /// A sign-in that was begun while the request was under way was ended with the others, and its token may become known even
  /// later, where the store took it late. One that was begun after the deletion was asked for counts as made at the end of
  /// Apple's second, so a later one is spared. Of a revocation from before the deletion, what was begun before that was noted
  /// is not told from what it has ended: so its echo ends nothing.
  private func echo(
    _ event: AccountEvent, of revocations: [OwnRevocation], _ clients: Set<ClientID>?
  ) async throws -> Decision {
    var changes: [StoreChange] = []
    if let deletion = try await store.lastDeletion(of: store.id(of: event.account)),
      revocations.contains(where: { $0.time >= deletion.requestedAt })
    {
      changes.append(.endTokens(issuedUpTo: event.occurredAt, of: clients))
    }
    guard revocations.contains(where: { $0.client == event.audience && !$0.isProven }) else {
      return Decision(Outcome.echo.rawValue, changes: changes)
    }
    return Decision(
      Outcome.proven.rawValue, changes: changes + [.noteOwnRevocation(of: event.audience, isProven: true)])
  }

  @Sendable private nonisolated static func announce(
    _ event: AccountEvent, _ account: AccountHash, _ entry: LedgerEntry
  ) -> [Announcement] {
    func nothing(_ reason: AccountOutcome.Reason) -> [Announcement] {
      [Announcement(reason, of: event, account, by: .tokenRevoker, at: entry.at)]
    }
    let names: [AccountOutcome.Name]
    switch Outcome(rawValue: entry.outcome) {
    case .revoked: names = [.tokensRevoked, .sessionsEnded]
    case .unproven: names = [.revocationUnproven, .sessionsEnded]
    case .noToken: names = [.noToken, .sessionsEnded]
    case .proven: names = [.tokensRevoked]
    case .echo: return nothing(.echo)
    case .newerSignIn: return nothing(.newerSignIn)
    case nil: return []
    }
    return names.map { name in
      Announcement(
        AccountOutcome(
          account: account, name: name, cause: AccountOutcome.Cause(event), consumer: ConsumerName.tokenRevoker.text,
          doneAt: entry.at))
    }
  }
}

extension StoredToken {
  /// Whether the event speaks of the authorization that the token stands for; `clients` are the apps it is about, nil all.
  func isEnded(by event: AccountEvent, of clients: Set<ClientID>?) -> Bool {
    issuedAt <= event.occurredAt && clients?.contains(token.client) ?? true
  }
}

/// What is held of the authorization of one app.
private struct Authorization: Comparable {
  let client: ClientID
  /// What is revoked with: access tokens only where there is nothing better, as they live for an hour.
  let revocable: [NewToken]
  /// Whether a validation can show that it is over. An access token cannot be validated: only the `consent-revoked` that
  /// follows says that Apple has ended it, and that stands behind this event in the account's lane.
  let isProvable: Bool

  /// The authorization that all of these tokens, at least one, stand for.
  init(_ tokens: [NewToken]) {
    let refreshing = tokens.filter { $0.kind == .refresh }
    (client, isProvable) = (tokens[0].client, !refreshing.isEmpty)
    revocable = isProvable ? refreshing : tokens
  }

  static func < (one: Authorization, other: Authorization) -> Bool { one.client.text < other.client.text }
}
