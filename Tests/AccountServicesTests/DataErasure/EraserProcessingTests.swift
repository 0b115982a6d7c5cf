import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// Erasures from the record on the topic to the offset that is committed.
@Loop @Suite(.timeLimit(.minutes(30))) struct EraserProcessingTests {
  @Test func aTargetThatRefusesForAnHourHoldsUpNobodyElseAndIsSeenAndTheErasureEndsComplete() async throws {
    var (rig, restarts) = (try await EraserRig(), 0)
    rig.shop.failure = ErasureFailure(.notNow, "status 503")
    try await rig.process.send(.sample(1, .accountDelete))
    try await rig.untilFailed(1)
    for minute in 1...60 {
      try await rig.process.advance(by: .seconds(60))
      try await rig.untilFailed(1 + minute + restarts)
      // Everybody else, of the same partition.
      try await rig.process.send(.sample(1 + minute, of: "person-\(minute)", .consentRevoked))
      try await rig.untilSaid(minute)
      guard minute.isMultiple(of: 20) else { continue }
      #expect(await rig.incomplete() == "1")
      #expect(try await rig.open() == ["event-1 shop failed not-now"])
      let open = try #require(try await rig.process.store.openErasures(by: .dataEraser, after: nil, limit: 1).first)
      #expect(open.since == ProcessorRig.now && open.attempts == 1 + minute + restarts)
      if minute == 40 {
        #expect(rig.process.captured.lines.contains { $0.contains("is tried again and again") })
        // Another process goes on with it, and says the same.
        await rig.process.stop()
        rig = try await EraserRig(after: rig)
        restarts = 1
        try await rig.untilFailed(42)
      }
    }
    #expect(rig.process.committed() ?? 0 == 0, "who begins anew finds it")
    #expect(rig.search.orders.count { $0.event.text == "event-1" } == 1, "what is done is not done again")

    rig.shop.failure = nil
    try await rig.process.advance(by: .seconds(60))
    try await rig.untilSaid(61)
    #expect(try rig.said().last == "event-1 account-erased: shop erased, search erased, account-store erased")
    #expect(await rig.incomplete() == "0")
    #expect(try await rig.open() == [])
    await rig.process.drain()
    #expect(rig.process.committed() == 61)
  }

  @Test func aTargetThatNeverAnswersHoldsUpNobodyElse() async throws {
    let rig = try await EraserRig()
    rig.shop.isSilent = true
    // Two of eight workers are a target's share while it is slow.
    for number in 1...2 { try await rig.process.send(.sample(number, of: "gone-\(number)", .accountDelete)) }
    try await until { rig.shop.unansweredCount == 2 }
    try await rig.process.advance(by: .seconds(2))
    for number in 3...20 { try await rig.process.send(.sample(number, of: "gone-\(number)", .accountDelete)) }
    try await until { rig.search.orders.count == 18 }
    try await until { rig.retrying("targets-paused") == "18" }
    #expect(rig.shop.unansweredCount == 2, "nobody else waits for its answer")
    try await rig.process.send(.sample(21, of: "other", .consentRevoked))
    try await rig.untilSaid(1)
    #expect(await rig.incomplete() == "18", "who waits for it is seen")
    #expect(try await rig.open().contains("event-10 shop failed paused"))

    // Its deadlines pass, again and again.
    try await until {
      rig.shop.timeOut()
      try await rig.process.advance(by: .seconds(1))
      return rig.process.metric("siwa_erasure_target_paused{target=\"shop\"}") == "1"
    }
    #expect(rig.process.captured.lines.contains { $0.contains("an erasure target is paused") })
    // Before time passes all that has failed has to wait: what fails later would still wait when the trial begins.
    try await until {
      rig.shop.timeOut()
      return rig.waiting == "20"
    }
    try await until {
      try await rig.process.advance(by: .seconds(60))
      return rig.shop.unansweredCount > 0
    }
    let counted = rig.process.store.counts[.count] ?? 0
    for number in 22...40 { try await rig.process.send(.sample(number, of: "late-\(number)", .accountDelete)) }
    try await until { rig.retrying("targets-paused") == "38" }
    #expect(rig.shop.unansweredCount == 1, "it is asked for a trial")
    #expect(rig.process.store.counts[.count] ?? 0 == counted, "who was not asked has not failed")
    try await rig.process.send(.sample(41, of: "another", .consentRevoked))
    try await rig.untilSaid(2)

    // It answers again.
    rig.shop.isSilent = false
    rig.shop.timeOut()
    try await until {
      try await rig.process.advance(by: .seconds(60))
      return try rig.said().count == 41
    }
    #expect(rig.process.metric("siwa_erasure_target_paused{target=\"shop\"}") == "0")
    #expect(await rig.incomplete() == "0")
    #expect(try await rig.open() == [])
    await rig.process.drain()
  }

  @Test func aFailureOfTheStoreSaysNothingOfATarget() async throws {
    let rig = try await EraserRig()
    let pausing = "siwa_erasure_target_paused{target=\"shop\"}"
    rig.shop.failure = ErasureFailure(.unavailable, "no answer in time")
    for number in 1...5 { try await rig.process.send(.sample(number, of: "gone-\(number)", .accountDelete)) }
    try await until { rig.process.metric(pausing) == "1" }
    // Who tries whether it answers cannot write down that it is asked.
    let store = rig.process.store
    store.before = { call throws(AccountStoreError) in
      if call == .record { throw AccountStoreError(.unavailable, "gone") }
    }
    let (asked, recorded) = (rig.shop.orders.count, store.counts[.record] ?? 0)
    try await until {
      try await rig.process.advance(by: .seconds(10))
      return store.counts[.record] ?? 0 > recorded
    }
    #expect(rig.shop.orders.count == asked)
    #expect(rig.process.metric(pausing) == "1")
    #expect(!rig.process.captured.lines.contains { $0.contains("answers again") })

    store.before = { _ in }
    rig.shop.failure = nil
    try await until {
      try await rig.process.advance(by: .seconds(60))
      return try rig.said().count == 5
    }
    #expect(rig.process.metric(pausing) == "0")
    await rig.process.drain()
  }

  @Test func aServiceThatWorksAtNightIsWaitedForWithoutAnAlarm() async throws {
    let rig = try await EraserRig()
    (rig.shop.isAtWork, rig.shop.retryAfter) = (true, .seconds(1800))
    try await rig.process.send(.sample(1, .accountDelete))
    try await until { rig.retrying("targets-in-progress") == "1" }
    try await rig.process.advance(by: .seconds(1799))
    #expect(rig.shop.orders.count == 1, "not before it wants to")
    for number in 2...21 {
      try await rig.process.advance(by: .seconds(1800))
      try await until { rig.shop.orders.count == number && rig.retrying("targets-in-progress") == "1" }
    }
    #expect(await rig.inProgress() == "1")
    #expect(await rig.incomplete() == "0")
    #expect(try await rig.open() == ["event-1 shop begun in-progress"])
    #expect(rig.process.store.counts[.count] == nil, "nothing has failed")
    #expect(rig.process.metric("siwa_erasure_target_failures_total{target=\"shop\",cause=\"not-now\"}") == "0")
    #expect(!rig.process.captured.lines.contains { $0.contains("\"error\"") || $0.contains("\"warning\"") })
    #expect(rig.search.orders.count == 1)

    rig.shop.isAtWork = false
    try await rig.process.advance(by: .seconds(1800))
    try await rig.untilSaid(1)
    #expect(try rig.said() == ["event-1 account-erased: shop erased, search erased, account-store erased"])
    #expect(await rig.inProgress() == "0")
    await rig.process.drain()
  }

  @Test func aServiceAtWorkIsAskedWhenItWantsThoughAnotherTargetIsTriedMoreOften() async throws {
    let rig = try await EraserRig()
    (rig.shop.isAtWork, rig.shop.retryAfter) = (true, .seconds(3600))
    rig.search.failure = ErasureFailure(.notNow, "status 503")
    try await rig.process.send(.sample(1, .accountDelete))
    for number in 1...10 {
      try await rig.untilFailed(number)
      try await rig.process.advance(by: .seconds(60))
    }
    try await rig.untilFailed(11)
    #expect(rig.search.orders.count == 11 && rig.shop.orders.count == 1)
    #expect(await rig.inProgress() == "1")
    #expect(await rig.incomplete() == "1", "of the other")
    await rig.process.drain()
  }

  /// The policy changes while a target refuses: what it still holds is nobody's to forget.
  @Test(arguments: [["search", "account-store"], []])
  func aTargetThatThePolicyNamesNoMoreIsOpenUntilSomebodyDecides(_ plan: [String]) async throws {
    var rig = try await EraserRig()
    rig.shop.failure = ErasureFailure(.notNow, "status 503")
    try await rig.process.send(.sample(1, .accountDelete))
    try await rig.untilFailed(1)
    await rig.process.stop()
    rig = try await EraserRig(after: rig, policy: ErasureSettings.Policy(consentRevoked: [], accountDelete: plan))
    let asked = rig.shop.orders.count
    rig.shop.failure = nil
    try await until { try await rig.open() == ["event-1 shop failed undeclared"] }
    #expect(rig.shop.orders.count == asked, "it is not asked any more")
    #expect(await rig.incomplete() == "1")
    #expect(try rig.said() == [])
    try await rig.process.send(.sample(2, of: "bob", .consentRevoked))

    let event = AccountEvent.sample(1).id
    let note = "discarded by bob: " + String(repeating: "é", count: 1000)
    let closed = try await rig.process.store.discardErasure(
      of: event, account: nil, target: "shop", note: note, at: ProcessorRig.now)
    #expect(closed == 1)
    try await until {
      try await rig.process.advance(by: .seconds(60))
      return rig.process.committed() == 2
    }
    // What was done before is said, also by a policy that names nothing any more.
    let end = plan.isEmpty ? "shop discarded, search erased" : "search erased, shop discarded, account-store erased"
    #expect(try rig.said() == ["event-2 no-effect: nothing-to-erase", "event-1 account-erased: \(end)"])
    let last = try #require(rig.process.cluster.appended(on: Topic.outcomes.name).last?.value)
    let notes = try AccountOutcome(decoding: last).targets.map(\.note)
    let kept = String(note.prefix(1000))
    #expect(notes == (plan.isEmpty ? [kept, nil] : [nil, kept, nil]))
    #expect(try await rig.open() == [])
    await rig.process.drain()
  }

  @Test func whatWasErasedAtATargetThatThePolicyNamesNoMoreIsSaid() async throws {
    var rig = try await EraserRig()
    rig.shop.failure = ErasureFailure(.notNow, "status 503")
    try await rig.process.send(.sample(1, .accountDelete))
    try await rig.untilFailed(1)
    await rig.process.stop()
    let policy = ErasureSettings.Policy(consentRevoked: [], accountDelete: ["shop", "account-store"])
    rig = try await EraserRig(after: rig, policy: policy)
    rig.shop.failure = nil
    try await until {
      try await rig.process.advance(by: .seconds(60))
      return rig.process.committed() == 1
    }
    #expect(rig.search.orders.count == 1, "it is not asked any more")
    #expect(try rig.said() == ["event-1 account-erased: shop erased, search erased, account-store erased"])
    await rig.process.drain()
  }

  /// A deletion has come to its end that never knew of the target; or it has erased there, too.
  @Test(arguments: [false, true])
  func whatAVoidErasureHasLeftIsAPersonsDecisionUnlessALaterOneHasErasedThere(_ isCovered: Bool) async throws {
    let rig = try await EraserRig()
    rig.shop.failure = ErasureFailure(.notNow, "status 503")
    try await rig.process.send(.sample(1, .accountDelete))
    try await rig.untilFailed(1)
    let store = rig.process.store
    let later = EventReference.of(.sample(2, .accountDelete), store, severity: 2)
    if isCovered {
      let erased = ErasureStep(
        target: "shop", state: .erased, before: nil, affected: nil, after: 0, detail: "", time: ProcessorRig.now)
      try await store.record(erased, of: later)
    }
    _ = try await store.settle(
      [Settlement(of: later, by: .dataEraser, outcome: "account-erased", changes: [])], at: ProcessorRig.now)
    try await rig.process.advance(by: .seconds(60))
    try await rig.untilCommitted(1)
    #expect(rig.deadLetters() == (isCovered ? [] : ["superseded-while-partial"]))
    #expect(try await rig.open() == (isCovered ? [] : ["event-1 shop failed not-now"]))
    let steps = try await rig.process.store.erasureSteps(of: AccountEvent.sample(1).id)
    #expect(steps.first { $0.target == "shop" }?.state == (isCovered ? .discarded : .failed))
    #expect(rig.shop.orders.count == 1, "it is not asked any more")
    await rig.process.drain()
  }

  /// The person begins anew while a target still holds something of before: nobody can tell the one from the other.
  @Test func whoSignsInAgainWhileATargetRefusesIsAPersonsDecision() async throws {
    let rig = try await EraserRig()
    let deletion = AccountEvent.sample(1, .accountDelete)
    rig.shop.failure = ErasureFailure(.notNow, "status 503")
    try await rig.process.send(deletion)
    try await rig.untilFailed(1)
    _ = try await rig.process.store.recordSignIn(deletion.account, at: AccountEvent.sample(5).occurredAt, tokens: [])
    rig.shop.failure = nil
    try await rig.process.advance(by: .seconds(60))
    try await until { rig.deadLetters() == ["superseded-while-partial"] }
    try await rig.process.send(.sample(7, .consentRevoked))
    try await rig.untilSaid(1)
    #expect(try rig.said() == ["event-7 account-erased: search erased"], "the account goes on")
    #expect(rig.shop.orders.count == 1, "what is there now may be of the new account")
    #expect(try await rig.open() == ["event-1 shop failed not-now"])
    #expect(await rig.incomplete() == "1")
    await rig.process.drain()
    #expect(rig.process.committed() == 2)

    // From the start of the topic: it is asked for again, until somebody has decided.
    rig.process.cluster.committed = [:]
    let again = try await EraserRig(after: rig)
    try await until { again.deadLetters().count == 2 }
    #expect(
      try await again.process.store.discardErasure(
        of: deletion.id, account: nil, target: nil, note: "bob", at: ProcessorRig.now) == 1)
    #expect(try await again.open() == [])
    #expect(await again.incomplete() == "0")
    await again.process.drain()
    again.process.cluster.committed = [:]
    let last = try await EraserRig(after: again)
    try await last.untilCommitted(2)
    #expect(
      last.process.metric("siwa_consumer_events_total{consumer=\"data-eraser\",outcome=\"superseded-newer-sign-in")
        == "1")
    #expect(last.deadLetters().count == 2 && last.shop.orders.count == 1)
    await last.process.drain()
  }

  @Test func whatAnErasureHasNotComeToIsOpenToo() async throws {
    let rig = try await EraserRig()
    let deletion = AccountEvent.sample(1, .accountDelete)
    let store = rig.process.store
    rig.shop.meanwhile = {
      _ = try await store.recordSignIn(deletion.account, at: AccountEvent.sample(5).occurredAt, tokens: [])
    }
    try await rig.process.send(deletion)
    try await until {
      try await rig.process.advance(by: .milliseconds(10))
      return rig.deadLetters() == ["superseded-while-partial"]
    }
    #expect(try await rig.open() == ["event-1 search failed superseded"])
    #expect(rig.search.orders.isEmpty)
    await rig.process.drain()
  }

  @Test func whatWasNotBegunIsVoidAndNobodysDecision() async throws {
    let rig = try await EraserRig()
    let deletion = AccountEvent.sample(1, .accountDelete)
    _ = try await rig.process.store.recordSignIn(deletion.account, at: AccountEvent.sample(5).occurredAt, tokens: [])
    try await rig.process.send(deletion)
    try await rig.untilCommitted(1)
    #expect(rig.deadLetters().isEmpty && rig.shop.orders.isEmpty)
    #expect(try rig.said() == ["event-1 no-effect: superseded-by-newer-sign-in"])
    #expect(try await rig.open() == [])
    await rig.process.drain()
  }

  @Test func anErasureOfWhichATargetWasOnlyPausedIsVoidAndNobodysDecision() async throws {
    let rig = try await EraserRig(
      policy: ErasureSettings.Policy(consentRevoked: [], accountDelete: ["shop", "account-store"]))
    rig.shop.failure = ErasureFailure(.unavailable, "no answer in time")
    for number in 2...6 { try await rig.process.send(.sample(number, of: "gone-\(number)", .accountDelete)) }
    try await until { rig.process.metric("siwa_erasure_target_paused{target=\"shop\"}") == "1" }
    let deletion = AccountEvent.sample(1, .accountDelete)
    try await rig.process.send(deletion)
    try await until { try await rig.open().contains("event-1 shop failed paused") }
    _ = try await rig.process.store.recordSignIn(deletion.account, at: AccountEvent.sample(7).occurredAt, tokens: [])
    rig.shop.failure = nil
    try await until {
      try await rig.process.advance(by: .seconds(60))
      return rig.process.committed() == 6
    }
    #expect(rig.deadLetters().isEmpty)
    #expect(!rig.shop.orders.contains { $0.event == deletion.id })
    #expect(try rig.said().count == 6)
    #expect(try rig.said().contains("event-1 no-effect: superseded-by-newer-sign-in"))
    #expect(try await rig.open() == [])
    await rig.process.drain()
  }

  @Test func theEventOfATeamWithoutAPolicyIsADeadLetterAndTheNextOneGoesOn() async throws {
    let rig = try await EraserRig()
    let (event, next) = (AccountEvent.sample(1, .accountDelete), AccountEvent.sample(2, of: "bob", .accountDelete))
    let other = AccountEvent(
      id: event.id, team: try #require(TeamID("Z1B2C3D4E5")), audience: event.audience, subject: event.subject,
      kind: event.kind, occurredAt: event.occurredAt, issuedAt: event.issuedAt)
    try await rig.process.send(other, next)
    try await rig.untilSaid(1)
    try await until { rig.deadLetters() == ["no-policy"] }
    #expect(rig.shop.orders.map(\.event) == [next.id])
    try await rig.untilCommitted(2)
    await rig.process.drain()
  }

  // MARK: The token revoker comes first

  /// A token of the account's, from before what the events speak of; `end` ends it as the token revoker does.
  private func keepToken(_ rig: EraserRig, _ event: AccountEvent) async throws -> @Loop () async throws -> Void {
    let token = NewToken(kind: .refresh, client: event.audience, value: try #require(SecretToken("r-a-token")))
    let store = rig.process.store
    _ = try await store.recordSignIn(event.account, at: event.occurredAt - .seconds(60), tokens: [token])
    return {
      let ended = Settlement(
        of: .of(event, store), by: .tokenRevoker, outcome: "tokens-revoked",
        changes: [.endTokens(issuedUpTo: event.occurredAt)])
      _ = try await store.settle([ended], at: ProcessorRig.now)
    }
  }

  @Test(arguments: [AccountEvent.Kind.consentRevoked, .accountDelete, .accountDeletionRequested])
  func anErasureFollowsTheTokenRevokerAtOnce(_ kind: AccountEvent.Kind) async throws {
    let rig = try await EraserRig()
    let event = AccountEvent.sample(1, kind)
    let end = try await keepToken(rig, event)
    try await rig.process.send(event)
    try await until { rig.process.alarm.left == .milliseconds(10) }
    try await rig.process.advance(by: .milliseconds(10))
    try await end()
    try await until { rig.process.alarm.left == .milliseconds(20) }
    try await rig.process.advance(by: .milliseconds(20))
    try await rig.untilSaid(1)
    #expect(rig.process.store.counts[.count] == nil, "nothing has failed")
    await rig.process.drain()
  }

  @Test(arguments: [AccountEvent.Kind.consentRevoked, .accountDelete])
  func whatAppleHasEndedIsErasedWithoutTheTokenRevokerAfterAWhile(_ kind: AccountEvent.Kind) async throws {
    var rig = try await EraserRig()
    let event = AccountEvent.sample(1, kind)
    _ = try await keepToken(rig, event)
    try await rig.process.send(event)
    func passMinutes(_ number: Int) async throws {
      for _ in 0..<number * 60 {
        try await rig.process.advance(by: .seconds(1))
      }
    }
    try await passMinutes(10)
    // The next process has not begun to wait just now.
    await rig.process.stop()
    rig = try await EraserRig(after: rig)
    try await passMinutes(4)
    #expect(rig.search.orders.isEmpty)
    #expect(rig.process.captured.lines.contains { $0.contains("tokens-not-ended") })
    try await passMinutes(3)
    try await rig.untilSaid(1)
    #expect(rig.process.metric("siwa_erasures_unrevoked_total") == "1")
    #expect(rig.process.captured.lines.contains { $0.contains("does not wait for the token revoker any longer") })
    await rig.process.drain()
  }

  @Test func aDeletionThatBeganWithUsIsNotErasedBeforeTheTokensAreRevokedAndAlarmed() async throws {
    let rig = try await EraserRig()
    let event = AccountEvent.sample(1, .accountDeletionRequested)
    let end = try await keepToken(rig, event)
    try await rig.process.send(event)
    for _ in 0..<3600 {
      try await rig.process.advance(by: .seconds(1))
    }
    #expect(rig.shop.orders.isEmpty && rig.search.orders.isEmpty)
    #expect(rig.process.captured.lines.contains { $0.contains("is tried again and again") })
    let attempts = rig.process.store.counts[.count] ?? 0
    #expect(50..<100 ~= attempts, "\(attempts)")
    try await end()
    try await rig.process.advance(by: .seconds(60))
    try await rig.untilSaid(1)
    #expect(rig.process.metric("siwa_erasures_unrevoked_total") == "0")
    await rig.process.drain()
  }
}
