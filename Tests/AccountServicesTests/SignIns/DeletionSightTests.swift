import AccountEvents
import AccountStore
import ConsumerSupport
import EventLoop
import JSON
import Telemetry
import TestSupport
import Testing

@testable import AccountServices

/// Deletions, and apps that do not share consent.
@Loop @Suite(.timeLimit(.minutes(30))) struct DeletionSightTests {
  private func with(
    _ body: @Loop (WatchedStore, Deletions, AccountSight, Account, ClientID, ClientID) async throws -> Void
  ) async throws {
    let file = StoreOfTests()
    let store = WatchedStore(try await file.open())
    let app = try #require(ClientID("com.example.app"))
    let web = try #require(ClientID("com.example.web"))
    let team = try #require(TeamID("A1B2C3D4E5"))
    let account = Account(team: team, subject: try #require(AppleSubject("a-person-of-the-test")))
    let sight = AccountSight(teams: [app: team, web: team], groups: ConsentGroups([team: [[app], [web]]]))
    let deletions = Deletions(
      store, sight, logger: Logger(level: .error, format: .text), now: { .now }, isAhead: { _ in false },
      announce: {})
    try await body(store, deletions, sight, account, app, web)
    await store.close()
  }

  private func event(_ deletion: Deletion, _ account: Account, _ store: WatchedStore) -> EventReference {
    EventReference(
      id: deletion.id, account: account, hash: store.hash(of: account), occurredAt: deletion.requestedAt,
      origin: EventOrigin(topic: Topic.accountEvents.name, partition: 0, offset: 0),
      weight: EventWeight(severity: 2, tie: 0), yieldsTo: [.signIn])
  }

  @Test func whoDoesNotSeeAnAccountDoesNotSeeItsDeletion() async throws {
    try await with { store, deletions, sight, account, app, web in
      let token = NewToken(kind: .refresh, client: app, value: try #require(SecretToken("a-refresh-token")))
      _ = try await store.recordSignIn(account, at: .now - .seconds(60), tokens: [token])
      let id = store.id(of: account)
      do throws(Problem) {
        _ = try await deletions.request(id, by: [web])
        Issue.record("it is deleted by who does not see it")
      } catch { #expect(error.kind == .notFound) }
      _ = try await deletions.request(id, by: [app])
      do throws(Problem) {
        _ = try await deletions.request(id, by: [web])
        Issue.record("the other group's app sees the deletion")
      } catch { #expect(error.kind == .notFound) }
    }
  }

  @Test func whoComesBackToOneAppIsNotKnownToTheOther() async throws {
    try await with { store, deletions, sight, account, app, web in
      let token = NewToken(kind: .refresh, client: app, value: try #require(SecretToken("a-refresh-token")))
      _ = try await store.recordSignIn(account, at: .now - .seconds(60), tokens: [token])
      let id = store.id(of: account)
      let first = try await deletions.request(id, by: [app]).deletion
      _ = try await store.settle(
        [
          Settlement(
            of: event(first, account, store), by: .tokenRevoker, outcome: "tokens-revoked",
            changes: [.endTokens(issuedUpTo: first.requestedAt, of: nil)]),
          Settlement(
            of: event(first, account, store), by: .dataEraser, outcome: "account-erased",
            changes: [.eraseAccount(isFinal: true)]),
        ], at: .now)
      let anew = NewToken(kind: .refresh, client: app, value: try #require(SecretToken("another-refresh-token")))
      _ = try await store.recordSignIn(account, at: .now + .seconds(5), tokens: [anew])
      guard case .known(let profile) = try await store.knowledge(of: id) else { throw CancellationError() }
      #expect(sight.signIns(of: profile, for: [web]) == nil)
      do throws(Problem) {
        _ = try await deletions.request(id, by: [web])
        Issue.record("the other group's app deletes it")
      } catch { #expect(error.kind == .notFound) }
    }
  }
}
