import AccountEvents
import AccountStore
import ConsumerSupport
import EventLoop
import TestSupport
import Testing

@testable import AccountServices

/// What is said of the accounts of a person whose app has gone to another team, and come back or gone on: each is what
/// another one was before, or has become.
@Loop @Suite struct ThereAndBackTests {
  private nonisolated static let app = AccountEvent.sample(1).audience
  private nonisolated static let other: ClientID = {
    guard let client = ClientID("com.example.other") else { preconditionFailure("it is well-formed") }
    return client
  }()
  private let account = AccountEvent.sample(1).account

  /// Nothing is erased, so that nothing but what was said already ends it.
  @Test(
    arguments: [
      AccountEvent.Kind.consentRevoked, .credentialInvalid, .accountDelete, .accountDeletionRequested,
    ], [false, true])
  func whatIsToldToAndFroComesToAnEnd(_ kind: AccountEvent.Kind, isGrouped: Bool) async throws {
    let file = StoreOfTests()
    let store = try await file.open()
    let other = Account(team: try #require(TeamID("Z9Y8X7W6V5")), subject: try #require(AppleSubject("ada-elsewhere")))
    let address = try #require(RelayAddress("ada@privaterelay.appleid.com"))
    _ = try await store.recordSignIn(account, at: .sample(1_600_000_000_000), tokens: [])
    try await store.transfer(
      account, to: other, address, with: Self.app, at: .sample(1_610_000_000_000), named: "there")
    try await store.transfer(other, to: account, address, with: Self.app, at: .sample(1_620_000_000_000), named: "back")
    try await store.removeFromOutbox(store.waitingEvents().map(\.id))
    let groups = ConsentGroups(isGrouped ? [account.team: [[Self.app]], other.team: [[Self.app]]] : [:])
    let told = try await told(after: AccountEvent.sample(1, kind), groups, store)
    #expect(told.contains { $0.account == other }, "the other account hears of it")
    #expect(told.count <= 5)
    await store.close()
  }

  /// What an event at one of the three teams that the app has been at leads to, and at which. The second team has another
  /// app.
  @Test(arguments: [
    // What is left there says nothing of before: the person is at the third one.
    Said(.accountDeletionRequested, at: 1, for: Self.other, isTold: [1]),
    Said(.consentRevoked, at: 1, for: Self.other, isTold: [1]),
    Said(.credentialInvalid, at: 1, for: Self.other, isTold: [1]),
    // The Apple Account itself is gone.
    Said(.accountDelete, at: 1, for: Self.other, isTold: [0, 1, 2]),
    // The app has said it, where it was then.
    Said(.accountDeletionRequested, at: 1, for: Self.app, isTold: [0, 1, 2]),
    Said(.consentRevoked, at: 1, for: Self.app, isTold: [0, 1, 2]),
    // The app says it where it is.
    Said(.accountDeletionRequested, at: 2, for: Self.app, isTold: [0, 1, 2]),
    Said(.consentRevoked, at: 2, for: Self.app, isTold: [0, 1, 2]),
    Said(.credentialInvalid, at: 2, for: Self.app, isTold: [0, 1, 2]),
    // It comes late.
    Said(.accountDeletionRequested, at: 0, for: Self.app, isTold: [0, 1, 2]),
    Said(.consentRevoked, at: 0, for: Self.app, isTold: [0, 1, 2]),
    Said(.credentialInvalid, at: 0, for: Self.app, isTold: [0]),
  ])
  func whatIsToldWhereAnAppHasGoneOnToAThirdTeam(_ said: Said) async throws {
    let file = StoreOfTests()
    let store = try await file.open()
    let teams = try ["A1B2C3D4E5", "Z9Y8X7W6V5", "T3T3T3T3T3"].map { try #require(TeamID($0)) }
    let accounts = try teams.map { Account(team: $0, subject: try #require(AppleSubject("ada-of-\($0.text)"))) }
    let address = try #require(RelayAddress("ada@privaterelay.appleid.com"))
    _ = try await store.recordSignIn(accounts[0], at: .sample(1_600_000_000_000), tokens: [])
    for step in 0...1 {
      try await store.transfer(
        accounts[step], to: accounts[step + 1], address, with: Self.app, at: .sample(1_610_000_000_000 + Int64(step)),
        named: "step-\(step)")
    }
    try await store.removeFromOutbox(store.waitingEvents().map(\.id))
    var groups = ConsentGroups([:])
    groups.teams = [Self.app: teams[2], Self.other: teams[1]]
    let sample = AccountEvent.sample(1, said.kind)
    let event = AccountEvent(
      id: sample.id, team: teams[said.place], audience: said.client, subject: accounts[said.place].subject,
      kind: said.kind, occurredAt: sample.occurredAt, issuedAt: sample.issuedAt)
    let told = try await told(after: event, groups, store)
    #expect(Set(told.compactMap { accounts.firstIndex(of: $0.account) }) == said.isTold)
    #expect(told.count == said.isTold.count, "each once")
    await store.close()
  }

  struct Said: Sendable {
    let kind: AccountEvent.Kind
    let place: Int
    let client: ClientID
    let isTold: Set<Int>

    init(_ kind: AccountEvent.Kind, at place: Int, for client: ClientID, isTold: Set<Int>) {
      (self.kind, self.place, self.client, self.isTold) = (kind, place, client, isTold)
    }
  }

  /// All events that follow from one, and itself, as the token revoker and the data eraser settle them.
  private func told(
    after event: AccountEvent, _ groups: ConsentGroups, _ store: any AccountStore
  ) async throws -> [AccountEvent] {
    var events = [event]
    var told: [AccountEvent] = []
    while !events.isEmpty {
      told += events
      try #require(told.count < 20, "it goes to and fro")
      for event in events {
        let changes = [StoreChange].tellingRelatives(of: event, groups)
        try await settle(event, by: .tokenRevoker, as: TokenRevoker.interest(in: event, groups), changes, store)
        try await settle(event, by: .dataEraser, as: DataEraser.interest(in: event), changes, store)
      }
      events = try await store.waitingEvents()
      try await store.removeFromOutbox(events.map(\.id))
    }
    return told
  }

  private func settle(
    _ event: AccountEvent, by consumer: ConsumerName, as interest: Interest?, _ changes: [StoreChange],
    _ store: any AccountStore
  ) async throws {
    let interest = try #require(interest)
    let reference = EventReference(
      id: event.id, account: event.account, hash: store.hash(of: event.account), occurredAt: event.occurredAt,
      origin: EventOrigin(topic: "apple.account-events.v1", partition: 0, offset: 0), weight: interest.weight,
      yieldsTo: interest.yieldsTo)
    _ = try await store.settle(
      [Settlement(of: reference, by: consumer, outcome: "done", changes: changes)], at: .sample(1_800_000_000_000))
  }
}
