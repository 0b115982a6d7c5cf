import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import Cryptography
import EventLoop
import Telemetry
import TestSupport
import Testing

/// What an event does to the targets that the policy names, over a real store.
@Loop @Suite(.timeLimit(.minutes(30))) struct DataEraserTests {
  private let shop = ScriptedTarget(holding: 12)
  private let search = ScriptedTarget(holding: 3)

  /// An eraser over a new store, whose team has withdrawn consents erase from the search alone.
  private func withEraser(
    groups: [TeamID: [Set<ClientID>]] = [:],
    _ body:
      @Loop (_ store: WatchedStore, _ process: @Loop (AccountEvent) async throws -> Processed, MetricsRegistry)
      async throws -> Void
  ) async throws {
    let files = TemporaryDirectory()
    let key = try #require(MasterKey(try SecureRandom.bytes(32)))
    try await SQLiteAccountStore.begin(files.path + "/store.sqlite", key)
    let store = WatchedStore(try await SQLiteAccountStore.open(files.path + "/store.sqlite", key))
    let registry = MetricsRegistry()
    let team = try #require(TeamID("A1B2C3D4E5"))
    let eraser = DataEraser(
      [
        team: ErasureSettings.Policy(
          consentRevoked: ["search"], accountDelete: ["shop", "search", "invoices", "account-store"])
      ],
      Erasures(
        [("shop", shop), ("search", search), ("invoices", Retention(ground: "§ 147 AO", until: "2036-12-31"))],
        store: store, concurrency: 8, registry: registry, logger: CapturedLog().logger(),
        now: { .sample(1_800_000_000_000) }, clock: { .now }, random: { 1 }),
      groups: ConsentGroups(groups), patience: .seconds(900), store: store, now: { .sample(1_800_000_000_000) })
    let announce = try #require(eraser.consumer.announce)
    func process(_ event: AccountEvent) async throws -> Processed {
      let reference = EventReference.of(event, store)
      let decision = try await eraser.process(Delivery(event: event, reference: reference))
      let entry = LedgerEntry(
        origin: reference.origin, outcome: decision.outcome, detail: decision.detail, at: .sample(1_800_000_000_000))
      return Processed(
        outcome: decision.outcome, changes: decision.changes, steps: decision.steps,
        announcements: announce(event, reference.hash, entry))
    }
    do {
      try await body(store, process, registry)
    } catch {
      await store.close()
      throw error
    }
    await store.close()
  }

  /// What an event came to, and what follows from that.
  private struct Processed {
    let outcome: String
    let changes: [StoreChange]
    let steps: [ErasureStep]
    let announcements: [Announcement]
  }

  private func outcome(_ decision: Processed) throws -> AccountOutcome {
    let announcement = try #require(decision.announcements.first)
    return try AccountOutcome(decoding: try #require(announcement.value))
  }

  @Test func erasesFromEveryTargetAndSaysSo() async throws {
    try await withEraser { store, process, _ in
      let decision = try await process(.sample(1, .accountDelete))
      #expect(decision.outcome == "account-erased")
      #expect(
        decision.changes == [
          .tellSuccessor(.accountDeletionRequested, of: nil),
          .tellPredecessor(.accountDeletionRequested, of: nil, ending: nil), .eraseAccount(isFinal: true),
        ])
      let outcome = try outcome(decision)
      #expect(
        outcome.targets == [
          AccountOutcome.Target(name: "shop", state: "erased", before: 12, affected: 12, after: 0),
          AccountOutcome.Target(name: "search", state: "erased", before: 3, affected: 3, after: 0),
          AccountOutcome.Target(name: "invoices", state: "retained", before: nil, affected: nil, after: nil),
          AccountOutcome.Target(name: "account-store", state: "erased", before: nil, affected: nil, after: nil),
        ])
      #expect(shop.orders.map(\.reason) == ["account-delete"])
      let record = decision.announcements.map { String(decoding: ($0.value ?? []) + $0.key, as: UTF8.self) }.joined()
      // With what stands before it: three letters may stand in a hash by chance.
      for name in ["\"ada", "/ada"] { #expect(!record.contains(name), "an outcome names nobody") }
    }
  }

  /// So that it takes no transaction of its own. Where the decision is not written, the target is asked again.
  @Test func theEndOfTheLastTargetIsWrittenWithTheDecision() async throws {
    try await withEraser { store, process, _ in
      let event = AccountEvent.sample(1, .consentRevoked)
      for attempt in 1...2 {
        let decision = try await process(event)
        #expect(decision.steps.map { "\($0.target) \($0.state)" } == ["search erased"])
        #expect(try await store.erasureSteps(of: event.id).map(\.state) == [.begun])
        #expect(search.orders.count == attempt)
      }
      let deletion = AccountEvent.sample(2, .accountDelete)
      #expect(try await process(deletion).steps.map(\.state) == [.retained])
      #expect(try await store.erasureSteps(of: deletion.id).map(\.state) == [.erased, .erased, .begun])
    }
  }

  @Test func erasesOfAWithdrawnConsentWhatThePolicyNames() async throws {
    try await withEraser { _, process, _ in
      let decision = try await process(.sample(1, .consentRevoked))
      let app = try #require(ClientID("com.example.app"))
      #expect(
        decision.changes == [
          .tellSuccessor(.credentialInvalid, of: [app]), .tellPredecessor(.credentialInvalid, of: nil, ending: []),
        ])
      #expect(try outcome(decision).targets.map(\.name) == ["search"])
      #expect(shop.orders.isEmpty)
    }
  }

  @Test func putsAsideTheEventOfATeamWithoutAPolicy() async throws {
    try await withEraser { _, process, _ in
      let event = AccountEvent.sample(1, .accountDelete)
      let other = AccountEvent(
        id: event.id, team: try #require(TeamID("Z1B2C3D4E5")), audience: event.audience, subject: event.subject,
        kind: event.kind, occurredAt: event.occurredAt, issuedAt: event.issuedAt)
      let failure = await #expect(throws: ConsumerFailure.self) { try await process(other) }
      #expect(failure == .permanent("no-policy", detail: "teams.Z1B2C3D4E5.erase is missing"))
    }
  }

  @Test func leavesTheTokensToTheRevokerFirst() async throws {
    try await withEraser { store, process, _ in
      let event = AccountEvent.sample(1, .accountDeletionRequested)
      let token = NewToken(
        kind: .refresh, client: event.audience, value: try #require(SecretToken("r-a-token-that-still-lives")))
      _ = try await store.recordSignIn(event.account, at: event.occurredAt - .seconds(60), tokens: [token])
      let failure = await #expect(throws: ConsumerFailure.self) { try await process(event) }
      #expect(failure == .waiting("tokens-not-ended", for: .milliseconds(10)))
      #expect(shop.orders.isEmpty && search.orders.isEmpty)
      #expect(store.counts[.holdsTokens] == 1 && store.counts[.tokens] == nil, "it needs no token, and opens none")

      let ended = Settlement(
        of: .of(event, store), by: .tokenRevoker, outcome: "tokens-revoked",
        changes: [.endTokens(issuedUpTo: event.occurredAt)])
      _ = try await store.settle([ended], at: event.occurredAt)
      #expect(
        try await process(event).changes
          == [
            .tellSuccessor(.accountDeletionRequested, of: [event.audience]),
            .tellPredecessor(.accountDeletionRequested, of: nil, ending: []), .eraseAccount(isFinal: true),
          ])
    }
  }

  @Test func doesNotWaitForTokensOfAppsWithAConsentOfTheirOwn() async throws {
    let event = AccountEvent.sample(1, .consentRevoked)
    try await withEraser(groups: [event.team: [[event.audience]]]) { store, process, _ in
      func keep(_ client: ClientID) async throws {
        let token = NewToken(kind: .refresh, client: client, value: try #require(SecretToken("r-of-\(client)")))
        _ = try await store.recordSignIn(event.account, at: event.occurredAt - .seconds(60), tokens: [token])
      }
      try await keep(try #require(ClientID("com.example.web")))
      #expect(try await process(event).outcome == "account-erased")
      try await keep(event.audience)
      _ = await #expect(throws: ConsumerFailure.self) { try await process(event) }
    }
  }

  @Test func goesOnWhereATargetHasFailedAndAsksNoOtherTwice() async throws {
    try await withEraser { store, process, registry in
      let event = AccountEvent.sample(1, .accountDelete)
      shop.failure = ErasureFailure(.notNow, "status 503")
      for _ in 1...3 {
        let failure = await #expect(throws: ConsumerFailure.self) { try await process(event) }
        #expect(failure == .transient("targets-incomplete", detail: "shop: not-now"))
      }
      #expect(shop.orders.count == 3 && search.orders.count == 1, "the others are erased, and not asked again")
      let steps = try await store.erasureSteps(of: event.id)
      #expect(Set(steps.map { "\($0.target) \($0.state)" }) == ["shop failed", "search erased", "invoices retained"])
      #expect(metric("siwa_erasure_target_failures_total{target=\"shop\",cause=\"not-now\"}", registry) == "3")

      shop.failure = nil
      let outcome = try outcome(try await process(event))
      #expect(outcome.targets.map(\.state) == ["erased", "erased", "retained", "erased"])
    }
  }

  @Test func leavesAloneWhoSignsInWhileATargetWorks() async throws {
    try await withEraser { store, process, _ in
      let event = AccountEvent.sample(1, .accountDelete)
      shop.failure = ErasureFailure(.notNow, "status 503")
      _ = await #expect(throws: ConsumerFailure.self) { try await process(event) }
      _ = try await store.recordSignIn(event.account, at: event.occurredAt + .seconds(60), tokens: [])
      shop.failure = nil
      let failure = await #expect(throws: ConsumerFailure.self) { try await process(event) }
      #expect(failure == .waiting("superseded-newer-sign-in", for: .milliseconds(10)))
      #expect(shop.orders.count == 1, "it was not asked again")
    }
  }

  @Test func keepsTheFirstCountOfAnAttemptThatWasCutShort() async throws {
    try await withEraser { store, process, _ in
      let event = AccountEvent.sample(1, .accountDelete)
      // What was erased could not be written down any more.
      let begun = ErasureStep(
        target: "shop", state: .begun, before: 12, affected: nil, after: nil, detail: "", time: event.occurredAt)
      try await store.record(begun, of: .of(event, store))
      shop.content = 0
      let target = try #require(try outcome(try await process(event)).targets.first)
      #expect(target == AccountOutcome.Target(name: "shop", state: "erased", before: 12, affected: nil, after: 0))
    }
  }

  private func metric(_ name: String, _ registry: MetricsRegistry) -> String? {
    String(decoding: registry.render(), as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name) }
      .flatMap { $0.split(separator: " ").last.map(String.init) }
  }
}
