package import AccountEvents
package import AccountStore
package import EventLoop

/// Erases a person from everything that the operator's policy names.
@Loop
package final class DataEraser {
  /// How long an erasure waits before it asks again whether the tokens are ended: at first no longer than the token
  /// revoker takes, then twice as long each time. Beyond the last of these it counts as an attempt that has failed.
  private static let pauses = (0..<7).map { Duration.milliseconds(10 << $0) }

  private let policies: [TeamID: ErasureSettings.Policy]
  private let erasures: Erasures
  private let groups: ConsentGroups
  private let patience: Duration
  private let store: any AccountStore
  private let now: @Sendable () -> Timestamp
  /// Whether tokens are held, asked together for erasures that go on side by side.
  private let tokens: Questions<TokenQuestion, Bool, AccountStoreError>

  /// An eraser by these policies; teams without one have nothing erased and everything reported. `groups` say which
  /// tokens have to be ended first, and `patience` how long that is waited for where Apple has ended them.
  package init(
    _ policies: [TeamID: ErasureSettings.Policy], _ erasures: Erasures, groups: ConsentGroups, patience: Duration,
    store: any AccountStore, now: @escaping @Sendable () -> Timestamp
  ) {
    (self.policies, self.erasures, self.groups) = (policies, erasures, groups)
    (self.patience, self.store, self.now) = (patience, store, now)
    tokens = Questions(upTo: 256) { questions throws(AccountStoreError) in try await store.holdsTokens(questions) }
  }

  /// The consumer `data-eraser`.
  package nonisolated var consumer: EventConsumer {
    var consumer = EventConsumer(
      .dataEraser, outcomes: Outcome.allCases.map(\.rawValue), interest: Self.interest
    ) { delivery in try await self.process(delivery) }
    consumer.lookAtVoid = { try await self.lookAtVoid($0, $1) }
    consumer.announce = Self.announce
    return consumer
  }

  /// What was done.
  enum Outcome: String, CaseIterable {
    case erased = "account-erased"
    case nothing = "nothing-to-erase"
  }

  /// A deletion covers what a withdrawn consent erases, and not the reverse.
  @Sendable nonisolated static func interest(in event: AccountEvent) -> Interest? {
    switch event.kind {
    case .emailEnabled, .emailDisabled, .accountTransferred: nil
    case .consentRevoked, .credentialInvalid: Interest(severity: 1, yieldsTo: [.signIn])
    case .accountDeletionRequested: Interest(severity: 2, tie: 0, yieldsTo: [.signIn])
    case .accountDelete: Interest(severity: 2, tie: 1, yieldsTo: [.signIn])
    }
  }

  /// Goes on with the erasure that the event leads to, and says what it came to once all of it is done.
  package func process(_ delivery: Delivery) async throws -> Decision {
    let event = delivery.event
    guard let policy = policies[event.team] else {
      throw ConsumerFailure.permanent("no-policy", detail: "teams.\(event.team).erase is missing")
    }
    let plan = policy.plan(for: event)
    // A policy that names nothing any more leaves open what was begun under the one before, and does not hide what was done.
    if plan.isEmpty {
      guard try await erasures.wasBegun(event.id) else { return Decision(Outcome.nothing.rawValue) }
    }
    try await waitForTheTokenRevoker(delivery)
    let order = ErasureOrder(
      account: event.account, event: event.id, reason: event.kind.name,
      occurredAt: event.kind == .credentialInvalid ? event.issuedAt : event.occurredAt)
    let completion: Erasures.Completion
    do {
      completion = try await erasures.proceed(with: order, plan: plan, event: delivery.reference, waits: delivery.waits)
    } catch let error as Erasures.Superseded {
      // The store judges it in the same way, and writes it down.
      throw ConsumerFailure.waiting("superseded-\(error.cause.rawValue)", for: .milliseconds(10))
    } catch let error as Erasures.Incomplete {
      throw ConsumerFailure.transient("targets-incomplete", detail: error.failures.joined(separator: ", "))
    } catch let error as Erasures.Waiting {
      let detail = error.targets.joined(separator: ", ")
      throw error.isPaused
        ? ConsumerFailure.waiting("targets-paused", for: error.pause, detail: detail)
        : ConsumerFailure.expected("targets-in-progress", for: error.pause, detail: detail)
    }
    // Last: until all else is erased, the store remembers how far it is. Who withdrew consent may give it anew without our
    // being told; whose account is deleted comes back by a sign-in only. The token revoker has told the accounts that the
    // person has at other teams, unless they came since.
    let isStoreErased = plan.contains(ErasureSettings.accountStore)
    let targets = completion.steps.map(AccountOutcome.Target.init) + (isStoreErased ? [.accountStore] : [])
    return Decision(
      Outcome.erased.rawValue, detail: AccountOutcome.Target.text(targets),
      changes: .tellingRelatives(of: event, groups)
        + (isStoreErased ? [.eraseAccount(isFinal: !event.kind.endsConsent)] : []),
      steps: completion.unrecorded)
  }

  @Sendable private nonisolated static func announce(
    _ event: AccountEvent, _ account: AccountHash, _ entry: LedgerEntry
  ) -> [Announcement] {
    let announcement: Announcement
    switch Outcome(rawValue: entry.outcome) {
    case .erased:
      announcement = Announcement(
        AccountOutcome(
          account: account, name: .accountErased, cause: AccountOutcome.Cause(event),
          consumer: ConsumerName.dataEraser.text, doneAt: entry.at, targets: AccountOutcome.Target.list(entry.detail)))
    case .nothing: announcement = Announcement(.nothingToErase, of: event, account, by: .dataEraser, at: entry.at)
    case nil: return []
    }
    return [announcement]
  }
}

extension DataEraser {
  /// Once the tokens are gone nobody can revoke them at Apple: the token revoker comes first, and for a deletion that began
  /// with us there is no way around it. Otherwise Apple has ended them already: who waits for their erasure does not wait
  /// for as long as the token revoker is away.
  fileprivate func waitForTheTokenRevoker(_ delivery: Delivery) async throws {
    let event = delivery.event
    let question = TokenQuestion(
      of: delivery.reference.account, issuedUpTo: event.occurredAt, clients: groups.clients(endedBy: event))
    guard try await tokens.ask(question) else { return }
    let cause = "tokens-not-ended"
    if delivery.waits < Self.pauses.count { throw ConsumerFailure.waiting(cause, for: Self.pauses[delivery.waits]) }
    if event.kind != .accountDeletionRequested, let since = delivery.failed.since, now() - since >= patience {
      return erasures.noteUnrevoked(event.id, waited: now() - since)
    }
    throw ConsumerFailure.transient(cause, detail: "the token revoker has not ended the account's tokens")
  }

  /// Who has signed in again keeps what is theirs now, and nobody can tell that from what a target still holds of before:
  /// where an erasure has got halfway, a person has to decide. A later event that outweighs this one covers what it has
  /// left, but for targets that the policy did not name any more.
  fileprivate func lookAtVoid(_ delivery: Delivery, _ supersession: Supersession) async throws {
    let left: [String]
    switch supersession {
    case .newerSignIn:
      let plan = policies[delivery.event.team]?.plan(for: delivery.event) ?? []
      left = try await erasures.leave(delivery.reference, plan: plan)
    case .newerEvent, .erased: left = try await erasures.yield(delivery.reference)
    }
    if !left.isEmpty {
      throw ConsumerFailure.permanent("superseded-while-partial", detail: left.joined(separator: ", "))
    }
  }
}

extension ErasureSettings.Policy {
  /// What is erased after the event.
  fileprivate func plan(for event: AccountEvent) -> [String] {
    event.kind.endsConsent ? consentRevoked : accountDelete
  }
}

extension AccountOutcome.Target {
  private static let longestNote = 1000

  /// What the store keeps is erased in the transaction that this is said with.
  fileprivate static let accountStore = AccountOutcome.Target(
    name: ErasureSettings.accountStore, state: ErasureStep.State.erased.rawValue, before: nil, affected: nil,
    after: nil)

  /// What a step says of its target.
  init(_ step: ErasureStep) {
    self.init(
      name: step.target, state: step.state.rawValue, before: step.before.map(Int64.init),
      affected: step.affected.map(Int64.init), after: step.after.map(Int64.init),
      note: step.state == .discarded ? String(step.detail.unicodeScalars.prefix(Self.longestNote)) : nil)
  }
}
