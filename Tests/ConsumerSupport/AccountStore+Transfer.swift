package import AccountEvents
package import AccountStore
import EventLoop
import Testing

extension AccountStore {
  /// Has the person of an account come to another one with an app that changed teams, and sign in there.
  @Loop
  package func transfer(
    _ account: Account, to other: Account, _ address: RelayAddress, with client: ClientID, at time: Timestamp,
    named name: String = "moving"
  ) async throws {
    let plan = try #require(
      TransferPlan(name, .sending, team: account.team, otherTeam: other.team, client: client, createdAt: time))
    let identifier = try #require(TransferSubject("001876.r0123456789abcdef"))
    let lease = Lease(name: plan.lease, holder: "test", until: time.milliseconds)
    #expect(try await add(plan) == nil)
    #expect(try await add([NewTransferUser(key: "4711", subject: account.subject)], to: plan) == 1)
    #expect(try await take(lease, after: nil))
    #expect(try await record([TransferResult(1, .identifier(identifier))], of: plan, under: lease, at: time) == [.done])
    _ = try await recordSignIn(
      other, at: time, tokens: [], of: nil,
      claiming: TransferClaim(identifier, to: client, address: address, isPrivate: true))
  }

  /// The events of our own that wait to be published.
  @Loop
  package func waitingEvents() async throws -> [AccountEvent] {
    let page = try await takeOutbox(
      by: "test", at: .sample(1_900_000_000_000), until: .sample(1_900_000_001_000), after: nil, limit: 1000)
    return try #require(page).records.map { try AccountEvent(decoding: $0.record.value) }
  }
}
