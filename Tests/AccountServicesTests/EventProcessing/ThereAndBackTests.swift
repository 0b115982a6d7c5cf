import AccountEvents
import AccountStore
import ConsumerSupport
import EventLoop
import TestSupport
import Testing

@testable import AccountServices

/// What is said of the accounts of a person whose app has gone to another team and come back: each is what the other one was
/// before, and what it has become.
@Loop @Suite struct ThereAndBackTests {
  private let app = AccountEvent.sample(1).audience
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
    try await store.transfer(account, to: other, address, with: app, at: .sample(1_610_000_000_000), named: "there")
    try await store.transfer(other, to: account, address, with: app, at: .sample(1_620_000_000_000), named: "back")
    try await store.removeFromOutbox(store.waitingEvents().map(\.id))
    let groups = ConsentGroups(isGrouped ? [account.team: [[app]], other.team: [[app]]] : [:])
    var events = [AccountEvent.sample(1, kind)]
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
    #expect(told.contains { $0.account == other }, "the other account hears of it")
    #expect(told.count <= 5)
    await store.close()
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
