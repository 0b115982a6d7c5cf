import AccountEvents
import Cryptography
import EventLoop
import Testing

@testable import AccountStore

/// Deletions that people ask for in an app, beside sign-ins and events, and the outbox that announces them.
@Loop @Suite struct DeletionTests {
  private let account = Sample.account()

  private static func id(_ number: Int = 1) -> EventID { Sample.valid(EventID("deletion-\(number)")) }

  private func request(
    _ number: Int = 1, at seconds: Int64, in store: any AccountStore, of other: Account? = nil
  ) async throws -> Deletion? {
    try await store.requestDeletion(
      of: other ?? account, in: Sample.client, as: Self.id(number), at: Sample.time(seconds))
  }

  /// The event that announces it, as consumers judge it.
  private func event(_ deletion: Deletion, _ store: any AccountStore) -> EventReference {
    let seconds = (deletion.requestedAt - Sample.time(0)).components.seconds
    return Sample.event(
      deletion.id.text, of: account, hash: store.hash(of: account), at: seconds, severity: 2, yieldsTo: [.signIn])
  }

  private func exchange(_ name: String, at seconds: Int64, by store: any AccountStore) -> CodeExchange {
    let digest = SHA256.digest(of: Array(name.utf8))
    return CodeExchange(
      request: digest, content: digest, code: digest, account: store.id(of: account), client: Sample.client,
      begunAt: Sample.time(seconds))
  }

  // MARK: What was asked for

  /// What each waits for, and since when: the number of the deletion is its second.
  private func open(_ store: any AccountStore, limit: Int = 100) async throws -> [String] {
    try await store.openDeletions(Sample.revoker, Sample.eraser, limit: limit).map { deletion in
      let state = deletion.isRevoked ? "erased" : deletion.isPublished ? "revoked" : "published"
      return "\((deletion.requestedAt - Sample.time(0)).components.seconds) to be \(state)"
    }
  }

  @Test(arguments: Implementation.all, [nil, 0, 1, 2, 4])
  func aDeletionIsOpenUntilItIsDoneOrVoid(_ implementation: Implementation, stepsOfRotation: Int?) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    #expect(try await open(store).isEmpty)
    try await store.fill(1...4)
    for number in 1...4 {
      _ = try #require(try await request(number, at: 20 + Int64(number), in: store, of: Sample.account(number)))
    }
    let waiting = (21...24).map { "\($0) to be published" }
    #expect(try await open(store) == waiting)
    #expect(try await open(store, limit: 2) == Array(waiting.prefix(2)))
    try await store.removeFromOutbox((1...4).map { Self.id($0) })
    #expect(try await open(store) == (21...24).map { "\($0) to be revoked" })
    let first = try #require(try await store.lastDeletion(of: store.id(of: account)))
    // The relay is first to know that the account is gone.
    let fence = event(first, store).settled(.removeRelay, .fenceAccount(isFinal: true))
    let revocation = event(first, store).settled(by: Sample.revoker, .endTokens(issuedUpTo: first.requestedAt))
    #expect(try await store.settle([fence, revocation], at: Sample.time(30)) == [.applied, .applied])
    #expect(try await open(store) == ["21 to be erased"] + (22...24).map { "\($0) to be revoked" })
    let erasure = event(first, store).settled(by: Sample.eraser, .eraseAccount(isFinal: true))
    #expect(try await store.settle([erasure], at: Sample.time(40)) == [.applied])
    // Another event has had it erased: that of the second one was lost.
    try await store.erase(Sample.account(2), at: 50)
    _ = try await store.recordSignIn(Sample.account(3), at: Sample.time(60), tokens: [])
    if let stepsOfRotation {
      let rotation = try await prepared.rotate(1)
      #expect(try await rotation.begin(newHashKey()))
      for _ in 0..<stepsOfRotation { _ = try await rotation.step() }
      #expect(try await open(store) == ["24 to be revoked"])
      try await rotation.finish()
    }
    #expect(try await open(store) == ["24 to be revoked"])
    await store.close()
  }

  @Test(arguments: Implementation.all)
  func aDeletionThatIsRepeatedIsTheSameOne(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      #expect(try await request(at: 5, in: store) == nil, "there is nobody")
      #expect(try await store.lastDeletion(of: store.id(of: account)) == nil)
      try await store.fill(1...2)
      let first = try #require(try await request(at: 20, in: store))
      #expect(
        first
          == Deletion(
            id: Self.id(), account: store.id(of: account), team: account.team, client: Sample.client,
            requestedAt: Sample.time(20), hadTokens: true))
      #expect(try await request(2, at: 30, in: store) == first)
      #expect(try await store.outbox() == OutboxState(waiting: 1, oldest: Sample.time(20)))
      let other = try #require(try await request(3, at: 30, in: store, of: Sample.account(2)))
      #expect(other.id == Self.id(3))

      // Once all of it is done, too: the first answer may have been lost.
      let event = event(first, store)
      let erasure = event.settled(by: Sample.eraser, .eraseAccount(isFinal: true))
      #expect(try await store.settle([erasure], at: Sample.time(40)) == [.applied])
      #expect(try await request(4, at: 50, in: store) == first)
      #expect(try await store.lastDeletion(of: store.id(of: account)) == first)
    }
  }

  @Test(arguments: Implementation.all)
  func itsEventIsWhatSomebodyWithTheStoresKeyHasAskedFor(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      _ = try await request(at: 20, in: store)
      let waiting = try #require(
        try await store.takeOutbox(by: "a", at: Sample.time(20), until: Sample.time(21), after: nil, limit: 9)
      ).records
      #expect(waiting.map(\.id) == [Self.id()])
      let record = waiting[0].record
      let event = try AccountEvent(decoding: record.value)
      #expect(event.kind == .accountDeletionRequested && event.account == account && event.id == Self.id())
      #expect(event.occurredAt == Sample.time(20) && record.key == account.key && record.topic == .accountEvents)
      let headers = Dictionary(uniqueKeysWithValues: record.headers.map { ($0.name, $0.value) })
      let code = String(decoding: headers[EventRecord.requestCodeHeader] ?? [], as: UTF8.self)
      #expect(store.isGenuine(code, of: DeletionRequest(record.value, by: [], because: [])))
      #expect(headers["ce_source"] == Array("urn:siwa:accounts".utf8))
    }
  }

  // MARK: Sign-ins beside it

  /// Apple says when somebody signed in, in whole seconds and by its own clock.
  @Test(arguments: Implementation.all)
  func aSignInBeforeItIsEndedThoughApplesClockIsAhead(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.recordSignIn(account, at: Sample.time(30), tokens: [Sample.token()])
      let deletion = try #require(try await request(at: 20, in: store))
      #expect(deletion.requestedAt == Sample.time(30))
      let event = event(deletion, store)
      #expect(try await store.standings(of: [event], for: Sample.revoker) == [.open(FailedAttempts())])
      let end = event.settled(by: Sample.revoker, .endTokens(issuedUpTo: event.occurredAt, of: nil))
      #expect(try await store.settle([end], at: Sample.time(31)) == [.applied])
      #expect(try await store.tokens(of: account).isEmpty)
    }
  }

  @Test(arguments: Implementation.all, [10, 20, 25] as [Int64])
  func aSignInThatBeginsAfterItIsNotTouched(_ implementation: Implementation, apples: Int64) async throws {
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.recordSignIn(account, at: Sample.time(1), tokens: [Sample.token(1)])
      let deletion = try #require(try await request(at: 20, in: store))
      // By the clock of another host it was begun before.
      let late = exchange("late", at: 19, by: store)
      #expect(try await store.begin(late) == .begun)
      let recorded = try await store.recordSignIn(
        account, at: Sample.time(apples), tokens: [Sample.token(2)], of: late.request)
      #expect(!recorded.isNew && recorded.over.isEmpty && recorded.at > deletion.requestedAt)
      let event = event(deletion, store)
      for consumer in [Sample.revoker, Sample.eraser] {
        #expect(try await store.standings(of: [event], for: consumer) == [.superseded(.newerSignIn)])
      }
      // Who asks again, asks for something else.
      let next = try #require(try await request(2, at: 21, in: store))
      #expect(next.id == Self.id(2) && next.requestedAt > deletion.requestedAt && next.hadTokens)
    }
  }

  @Test(arguments: Implementation.all, [10, 20, 25] as [Int64])
  func aSignInAfterItsErasureBeginsAnew(_ implementation: Implementation, apples: Int64) async throws {
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.recordSignIn(account, at: Sample.time(1), tokens: [Sample.token(1)])
      let deletion = try #require(try await request(at: 20, in: store))
      let event = event(deletion, store)
      let ends = event.settled(by: Sample.revoker, .endTokens(issuedUpTo: event.occurredAt, of: nil))
      let erases = event.settled(by: Sample.eraser, .eraseAccount(isFinal: true))
      #expect(try await store.settle([ends, erases], at: Sample.time(22)) == [.applied, .applied])
      let late = exchange("late", at: 23, by: store)
      #expect(try await store.begin(late) == .begun)
      let recorded = try await store.recordSignIn(
        account, at: Sample.time(apples), tokens: [Sample.token(2)], of: late.request)
      #expect(recorded.isNew && recorded.over.isEmpty && recorded.at > deletion.requestedAt)
      #expect(try await store.tokens(of: account).map(\.token) == [Sample.token(2)])
      // The old one is done, and says so.
      let progress = try #require(try await store.deletion(deletion.id, by: [Sample.revoker, Sample.eraser]))
      #expect(Set(progress.entries.keys) == [Sample.revoker, Sample.eraser])
      #expect(try await request(2, at: 30, in: store)?.id == Self.id(2))
    }
  }

  /// The sign-in was under way when the deletion was asked for: its token is ended with the others.
  @Test(arguments: Implementation.all)
  func aSignInThatBeganBeforeItIsEnded(_ implementation: Implementation) async throws {
    for isDone in [false, true] {
      try await PreparedStore.with(implementation) { store throws in
        _ = try await store.recordSignIn(account, at: Sample.time(1), tokens: [Sample.token(1)])
        let early = exchange("early", at: 19, by: store)
        #expect(try await store.begin(early) == .begun)
        let deletion = try #require(try await request(at: 20, in: store))
        let event = event(deletion, store)
        let ends = event.settled(by: Sample.revoker, .endTokens(issuedUpTo: event.occurredAt, of: nil))
        if isDone { #expect(try await store.settle([ends], at: Sample.time(22)) == [.applied]) }
        let recorded = try await store.recordSignIn(
          account, at: Sample.time(20), tokens: [Sample.token(2)], of: early.request)
        #expect(recorded.over == (isDone ? [Sample.token(2)] : []))
        if !isDone { #expect(try await store.settle([ends], at: Sample.time(22)) == [.applied]) }
        #expect(try await store.tokens(of: account).isEmpty)
      }
    }
  }

  // MARK: Events beside it

  @Test(arguments: Implementation.all)
  func whatAppleDeletesMeanwhileCoversIt(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      let deletion = try #require(try await request(at: 20, in: store))
      let apples = Sample.event("apples", of: account, at: 21, severity: 2, tie: 1)
      let erasure = apples.settled(by: Sample.eraser, .eraseAccount(isFinal: true))
      #expect(try await store.settle([erasure], at: Sample.time(22)) == [.applied])
      #expect(
        try await store.standings(of: [event(deletion, store)], for: Sample.eraser) == [.superseded(.newerEvent)])
      #expect(try await request(2, at: 23, in: store) == deletion)
      // Its event is published all the same, though nothing of the account is there any more.
      let waiting = try await store.takeOutbox(
        by: "a", at: Sample.time(23), until: Sample.time(24), after: nil, limit: 9)
      #expect(waiting?.records.map(\.id) == [deletion.id])
    }
  }

  @Test(arguments: Implementation.all)
  func aWithdrawnConsentDoesNotCoverIt(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      let deletion = try #require(try await request(at: 20, in: store))
      let consent = Sample.event("consent", of: account, at: 21, severity: 1)
      let erasure = consent.settled(by: Sample.eraser, .eraseAccount(isFinal: false))
      #expect(try await store.settle([erasure], at: Sample.time(22)) == [.applied])
      #expect(try await store.standings(of: [event(deletion, store)], for: Sample.eraser) == [.open(FailedAttempts())])
    }
  }

  // MARK: How far it is

  @Test(arguments: Implementation.all)
  func saysHowFarItIs(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...1)
      let consumers = [Sample.revoker, Sample.eraser]
      #expect(try await store.deletion(Self.id(), by: consumers) == nil)
      let deletion = try #require(try await request(at: 20, in: store))
      var expected = DeletionProgress(deletion, isPublished: false, entries: [:], steps: [])
      #expect(try await store.deletion(Self.id(), by: consumers) == expected)
      try await store.removeFromOutbox([Self.id()])
      let event = event(deletion, store)
      _ = try await store.settle(
        [event.settled(by: Sample.revoker), event.settled(by: Sample.relay)], at: Sample.time(21))
      let step = ErasureStep(
        target: "shop", state: .erased, before: 2, affected: 2, after: 0, detail: "", time: Sample.time(22))
      try await store.record(step, of: event)
      let entry = event.entry(at: Sample.time(21))
      expected = DeletionProgress(deletion, isPublished: true, entries: [Sample.revoker: entry], steps: [step])
      #expect(try await store.deletion(Self.id(), by: consumers) == expected)
    }
  }

  @Test(arguments: Implementation.all)
  func isForgottenWithWhatTheLedgerSaysOfIt(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      try await store.fill(1...2)
      let deletion = try #require(try await request(at: 20, in: store))
      _ = try await request(2, at: 20, in: store, of: Sample.account(2))
      _ = try await store.settle([event(deletion, store).settled(by: Sample.eraser)], at: Sample.time(30))
      for isRehearsal in [true, false] {
        let pruning = try await administration.prune(
          before: Sample.time(31), eraser: Sample.eraser, isRehearsal: isRehearsal
        ) { _ in }
        #expect(pruning.deletions == 1 && pruning.settled == 1)
      }
      #expect(try await store.deletion(Self.id(), by: []) == nil)
      // Nobody has dealt with this one yet.
      #expect(try await store.deletion(Self.id(2), by: []) != nil)
    }
  }

  // MARK: The outbox

  @Test(arguments: Implementation.all)
  func onePublishesAtATimeInTheOrderInWhichItWasWritten(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...3)
      for number in 1...3 { _ = try await request(number, at: 20, in: store, of: Sample.account(number)) }
      func take(_ holder: String, at seconds: Int64, limit: Int = 9) async throws -> [String]? {
        try await store.takeOutbox(
          by: holder, at: Sample.time(seconds), until: Sample.time(seconds + 10), after: nil, limit: limit)?.records
          .map(\.id.text)
      }
      #expect(try await take("a", at: 30) == ["deletion-1", "deletion-2", "deletion-3"])
      #expect(try await take("b", at: 39) == nil)
      #expect(try await take("a", at: 32, limit: 2) == ["deletion-1", "deletion-2"])
      // The other one is gone.
      try await store.removeFromOutbox([Self.id(1), Self.id(3)])
      #expect(try await take("b", at: 42) == ["deletion-2"])
      #expect(try await take("a", at: 43) == nil)
      try await store.leaveOutbox("a")
      #expect(try await take("a", at: 43) == nil)
      try await store.leaveOutbox("b")
      #expect(try await take("a", at: 43) == ["deletion-2"])
      try await store.removeFromOutbox([Self.id(2), Self.id(2)])
      #expect(try await store.outbox() == OutboxState(waiting: 0, oldest: nil))
    }
  }

  @Test(arguments: Implementation.all)
  func whatWaitsIsFoundVerifiedAndGoesThroughARotationOfTheHashingKey(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await store.fill(1...1)
    let deletion = try #require(try await request(at: 20, in: store))
    var held = try await prepared.administration.holdings(of: account)
    #expect(held.waiting == 1 && held.events.contains(deletion.id))
    let rotation = try await prepared.rotate(100)
    #expect(try await rotation.begin(newHashKey()))
    #expect(try await request(2, at: 30, in: store) == deletion)
    try await rotation.finish()
    #expect(try await request(2, at: 30, in: store) == deletion)
    let waiting = try #require(
      try await store.takeOutbox(by: "a", at: Sample.time(20), until: Sample.time(21), after: nil, limit: 9)
    ).records
    let code = waiting[0].record.headers.first { $0.name == EventRecord.requestCodeHeader }?.value ?? []
    #expect(
      store.isGenuine(
        String(decoding: code, as: UTF8.self), of: DeletionRequest(waiting[0].record.value, by: [], because: [])))
    try await store.removeFromOutbox([deletion.id])
    held = try await prepared.administration.holdings(of: account)
    #expect(held.waiting == 0 && held.traces > 0)
    #expect(try await prepared.administration.verify { _ in }.findings == [])
    await store.close()
  }
}
