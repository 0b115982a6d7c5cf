import AccountEvents
import AccountStore
import ConsumerSupport
import EventLoop
import HTTPClient
import JSON
import Telemetry
import TestSupport
import Testing

@testable import AccountServices

/// What applications are told of deletions that people have asked for.
@Loop @Suite(.timeLimit(.minutes(30))) struct DeletionsTests {
  @Test func whoHasNoAppOfTheTeamSeesNothing() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn()
      await rig.expectNothing { () throws(Problem) in try await rig.deletions.request(id, by: [rig.foreign]) }
      #expect(try await rig.store.outbox().waiting == 0)
      let deletion = try await rig.deletions.request(id, by: [rig.app]).deletion
      #expect(deletion.client == rig.app && rig.announced == 1)
      await rig.expectNothing { () throws(Problem) in try await rig.deletions.show(deletion.id, by: [rig.foreign]) }
      #expect(try await rig.deletions.show(deletion.id, by: [rig.web]).deletion == deletion)
    }
  }

  @Test func nobodyIsDeletedWhoIsNotKnown() async throws {
    try await Rig.run { rig in
      let id = rig.store.id(of: rig.account)
      await rig.expectNothing { () throws(Problem) in try await rig.deletions.request(id, by: [rig.app]) }
    }
  }

  /// The commit has happened, and its answer was lost.
  @Test func aRequestThatIsRepeatedAsNobodyKnowsIsTheSame() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn()
      rig.store.after = { call throws(AccountStoreError) in
        if call == .requestDeletion { throw AccountStoreError(.uncertain, "as the test wants") }
      }
      do throws(Problem) {
        _ = try await rig.deletions.request(id, by: [rig.app])
        Issue.record("it succeeded")
      } catch { #expect(error.kind == .unavailable) }
      rig.store.after = { _ in }
      let first = try await rig.deletions.request(id, by: [rig.app])
      #expect(try await rig.deletions.request(id, by: [rig.app]) == first)
      #expect(try await rig.store.outbox().waiting == 1)
    }
  }

  /// The first answer was lost; before the request is repeated, the person signs in again.
  @Test func aRequestThatIsRepeatedLateEndsNoNewSignIn() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn()
      let first = try await rig.deletions.request(id, named: "a-key", by: [rig.app]).deletion
      _ = try await rig.signIn(at: first.requestedAt + .seconds(1))
      #expect(try await rig.deletions.request(id, named: "a-key", by: [rig.app]).deletion == first)
      #expect(try await rig.store.outbox().waiting == 1 && rig.announced == 1)
      let second = try await rig.deletions.request(id, named: "another", by: [rig.app]).deletion
      #expect(second.id != first.id && second.requestedAt > first.requestedAt)
      #expect(try await rig.deletions.request(id, named: "a-key", by: [rig.app]).deletion == first)
      #expect(try await rig.store.outbox().waiting == 2)
    }
  }

  /// What Apple tells of until then would be void.
  @Test func noDeletionIsTakenByAClockThatIsAhead() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn()
      rig.isAhead = true
      do throws(Problem) {
        _ = try await rig.deletions.request(id, named: "a-key", by: [rig.app])
        Issue.record("it succeeded")
      } catch { #expect(error.kind == .unavailable && error.retryAfter == 60) }
      #expect(try await rig.store.outbox().waiting == 0 && rig.announced == 0)
      rig.isAhead = false
      let deletion = try await rig.deletions.request(id, named: "a-key", by: [rig.app]).deletion
      rig.isAhead = true
      #expect(try await rig.deletions.request(id, named: "a-key", by: [rig.app]).deletion == deletion)
      #expect(try await rig.deletions.show(deletion.id, by: [rig.app]).deletion == deletion)
      let nobody = try #require(AccountID(bytes: [UInt8](repeating: 7, count: 32)))
      await rig.expectNothing { () throws(Problem) in try await rig.deletions.request(nobody, by: [rig.app]) }
    }
  }

  @Test func aKeyIsOneCallersAlone() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn()
      let first = try await rig.deletions.request(id, named: "a-key", by: [rig.app]).deletion
      _ = try await rig.signIn(at: first.requestedAt + .seconds(1))
      let others = try await rig.deletions.request(id, named: "a-key", of: "another", by: [rig.web]).deletion
      #expect(others.id != first.id)
    }
  }

  @Test func eachStateFollowsFromWhatWasDone() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn()
      var progress = try await rig.deletions.request(id, by: [rig.app])
      #expect(progress.state == .requested && !progress.isEndedByHand)
      #expect(progress.stepsTaken.map(\.state) == ["waiting", "waiting", "waiting"])
      try await rig.store.removeFromOutbox([progress.deletion.id])
      progress = try await rig.show(progress)
      #expect(progress.state == .revoking)
      try await rig.settle(progress, by: .tokenRevoker, "revocation-unproven")
      progress = try await rig.show(progress)
      #expect(progress.state == .erasing && progress.isEndedByHand)
      try await rig.settle(progress, by: .dataEraser, "account-erased")
      progress = try await rig.show(progress)
      #expect(progress.state == .completed)
      let name = progress.deletion.id.text
      let receipt: [JSONValue.Member] = [
        .init("event", .string(name)), .init("command", .string("siwa audit receipt \(name)")),
      ]
      #expect(progress.json(nil)["receipt"] == .object(receipt))
      let address = "https://audit.example.com/siwa"
      #expect(
        progress.json(HTTPClientURL(address))["receipt"] == .object(receipt + [.init("log", .string(address))]))
      #expect(progress.stepsTaken.map(\.state) == ["published", "revocation-unproven", "account-erased"])
    }
  }

  @Test(arguments: [
    (Supersession.newerSignIn, DeletionProgress.State.superseded, "superseded"), (.newerEvent, .completed, "covered"),
  ])
  func whatSomethingElseHasMadeVoidSaysSo(
    _ cause: Supersession, _ state: DeletionProgress.State, _ word: String
  ) async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn()
      var progress = try await rig.deletions.request(id, by: [rig.app])
      for consumer in [ConsumerName.tokenRevoker, .dataEraser] {
        try await rig.settle(progress, by: consumer, cause.outcome)
      }
      progress = try await rig.show(progress)
      #expect(progress.state == state && progress.stepsTaken.map(\.state) == ["published", word, word])
    }
  }

  @Test func withoutATokenThePersonIsToldWhatToDo() async throws {
    try await Rig.run { rig in
      let id = try await rig.signIn(hasToken: false)
      let progress = try await rig.deletions.request(id, by: [rig.app])
      let json = String(decoding: progress.json(HTTPClientURL("https://audit.example.com/siwa")).bytes, as: UTF8.self)
      #expect(json.contains("Settings") && json.contains(#""url":"https://account.apple.com""#), "\(json)")
      #expect(!json.contains("receipt") && !json.contains(rig.account.subject.text))
    }
  }
}

extension DeletionsTests {
  /// Its event was published, and nobody has read it: nothing else says that.
  @Test func aDeletionThatNothingComesOfIsCountedWithItsAge() async throws {
    try await Rig.run { rig in
      let registry = MetricsRegistry()
      let watch = DeletionWatch(
        rig.store, registry: registry, logger: Logger(level: .error, format: .text), now: { .now + .seconds(90_000) })
      func metrics(_ state: String) -> (open: String?, isOld: Bool) {
        let age = registry.value(of: #"siwa_accounts_deletions_oldest_seconds{state="\#(state)"}"#)
        return (
          registry.value(of: #"siwa_accounts_deletions_open{state="\#(state)"}"#),
          age.flatMap { Double($0) }.map { $0 >= 90_000 } ?? false
        )
      }
      await watch.look()
      #expect(metrics("requested") == ("0", false) && metrics("revoking") == ("0", false))
      let asked = try await rig.deletions.request(try await rig.signIn(), by: [rig.app])
      await watch.look()
      #expect(metrics("requested") == ("1", true) && metrics("revoking") == ("0", false))
      try await rig.store.removeFromOutbox([asked.deletion.id])
      await watch.look()
      #expect(metrics("requested") == ("0", false) && metrics("revoking") == ("1", true))
      try await rig.settle(asked, by: .tokenRevoker, "tokens-revoked")
      await watch.look()
      #expect(metrics("revoking") == ("0", false) && metrics("erasing") == ("1", true))
      try await rig.settle(asked, by: .dataEraser, "account-erased")
      await watch.look()
      #expect(metrics("erasing") == ("0", false))
    }
  }
}

extension Deletions {
  /// Asks as a caller for these apps.
  func request(
    _ account: AccountID, named key: String? = nil, of caller: String = "shop", by clients: Set<ClientID>
  ) async throws(Problem) -> DeletionProgress {
    try await request(
      account, named: key, by: AccountsSettings.Caller(name: caller, clients: clients, tokens: []))
  }
}

/// Deletions with a store and two teams.
@Loop
private final class Rig {
  let (app, web, foreign): (ClientID, ClientID, ClientID)
  let account: Account
  let store: WatchedStore
  private(set) var announced = 0
  /// Whether our clock is known to be ahead of Apple's.
  var isAhead = false
  private var made: Deletions?

  static func run(_ body: @Loop (Rig) async throws -> Void) async throws {
    let file = StoreOfTests()
    let rig = try Rig(try await file.open())
    try await body(rig)
    await rig.store.close()
  }

  private init(_ store: any AccountStore) throws {
    app = try #require(ClientID("com.example.app"))
    web = try #require(ClientID("com.example.web"))
    foreign = try #require(ClientID("org.example.app"))
    let (team, other) = (try #require(TeamID("A1B2C3D4E5")), try #require(TeamID("F1B2C3D4E5")))
    account = Account(team: team, subject: try #require(AppleSubject("a-person-of-the-test")))
    self.store = WatchedStore(store)
    let sight = AccountSight(teams: [app: team, web: team, foreign: other], groups: ConsentGroups([:]))
    made = Deletions(
      self.store, sight, logger: Logger(level: .error, format: .text), now: { .now },
      isAhead: { [weak self] _ in self?.isAhead ?? false }, announce: { [weak self] in self?.announced += 1 })
  }

  var deletions: Deletions {
    guard let made else { preconditionFailure("it is made at the start") }
    return made
  }

  func signIn(at time: Timestamp = .now - .seconds(60), hasToken: Bool = true) async throws -> AccountID {
    let token = NewToken(kind: .refresh, client: app, value: try #require(SecretToken("a-refresh-token")))
    _ = try await store.recordSignIn(account, at: time, tokens: hasToken ? [token] : [])
    return store.id(of: account)
  }

  func show(_ progress: DeletionProgress) async throws -> DeletionProgress {
    try await deletions.show(progress.deletion.id, by: [app])
  }

  func settle(_ progress: DeletionProgress, by consumer: ConsumerName, _ outcome: String) async throws {
    let event = EventReference(
      id: progress.deletion.id, account: account, hash: store.hash(of: account),
      occurredAt: progress.deletion.requestedAt,
      origin: EventOrigin(topic: Topic.accountEvents.name, partition: 0, offset: 0),
      weight: EventWeight(severity: 2, tie: 0), yieldsTo: [.signIn])
    let settled = try await store.settle(
      [Settlement(of: event, by: consumer, outcome: outcome, detail: "", changes: [])], at: .now)
    try #require(settled == [.applied])
  }

  func expectNothing(
    _ body: () async throws(Problem) -> DeletionProgress, sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    do throws(Problem) {
      _ = try await body()
      Issue.record("it succeeded", sourceLocation: sourceLocation)
    } catch { #expect(error.kind == .notFound, "\(error)", sourceLocation: sourceLocation) }
  }
}
