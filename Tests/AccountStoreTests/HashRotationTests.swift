import AccountEvents
import EventLoop
import TestSupport
import Testing

@testable import AccountStore

/// The hashing key is replaced: whoever asks finds everything at every moment, and nobody who was erased comes back.
@Loop @Suite struct HashRotationTests {
  private let now = Sample.time(10_000)

  @Test(arguments: Implementation.all, [0, 1, 3, 6, 10, 1000])
  func whoeverAsksFindsEverythingAfterAnyStep(_ implementation: Implementation, steps: Int) async throws {
    let prepared = try await implementation.prepare()
    let old = try await prepared.open()
    try await Population.settle(in: old)
    let known = try await Population.Knowledge(of: old)
    #expect(known.hasAll)
    let hashes = Population.accounts.map { old.hash(of: $0) }

    let key = try newHashKey()
    let rotation = try await prepared.rotate(2)
    #expect(try await rotation.begin(key))
    var left = true
    for _ in 0..<steps where left { left = try await rotation.step() }
    #expect(left == (steps < 100))
    if !left { try await rotation.complete() }
    // One program knew the store before, with all hashes that it had made; the other one comes now.
    let new = try await prepared.open()
    #expect(try await new.relayStates(of: Population.accounts) == known.mail, "mailers do not wait for anybody's move")
    #expect(try await old.relayStates(of: Population.accounts) == known.mail)
    for store in [old, new] { #expect(try await Population.Knowledge(of: store) == known) }
    #expect(try await prepared.administration.verify { _ in }.findings == [])

    if left { try await prepared.rotate(5).resume() }
    for store in [old, new] {
      #expect(try await Population.Knowledge(of: store) == known)
      for (account, hash) in zip(Population.accounts, hashes) {
        #expect(store.hash(of: account) != hash)
        #expect(try store.hash(of: account).key == name(of: key))
        #expect(store.hashes(of: account) == [hash, store.hash(of: account)])
        #expect(store.newest(of: hash) == store.hash(of: account))
      }
      await store.close()
    }
    let report = try await prepared.administration.verify { _ in }
    #expect(report.findings == [] && !report.isMoving)
  }

  @Test(arguments: Implementation.all)
  func anotherKeyComesOnlyOnceThereIsNothingLeftToMove(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await Population.settle(in: store)
    let (first, second) = (try newHashKey(), try newHashKey())
    let administration = prepared.administration
    func refusal(of key: HashKey?) async -> String {
      let error = await #expect(throws: AccountStoreError.self) {
        try await administration.rotateHashKey(to: key) { _ in }
      }
      #expect(error?.code == .failed)
      return error?.detail ?? ""
    }
    #expect(await refusal(of: nil).contains("no rotation of its hashing key is under way"))
    let rotation = try await prepared.rotate(3)
    #expect(try await rotation.begin(first))
    #expect(try await rotation.step())
    #expect(await refusal(of: second).contains("a rotation to hashing key \(first.id) is under way"))
    let moved = try await administration.rotateHashKey(to: first) { _ in }
    #expect(moved.key == first.id && moved.rows > 0)
    #expect(try await administration.rotateHashKey(to: first) { _ in }.rows == 0, "it is in use")
    #expect(try await administration.rotateHashKey(to: second) { _ in }.key == second.id)
    #expect(await refusal(of: first).contains("was replaced before"))
    #expect(await refusal(of: nil).contains("no rotation"))
    #expect(try await store.tokens(of: Population.signedIn).isEmpty == false)
    let names: [HashKeyID?] = [nil, try name(of: first), try name(of: first, second)]
    #expect(store.hashes(of: Population.signedIn).map(\.key) == names)
    await store.close()
  }

  @Test(arguments: KeyRotationTests.all)
  func theMasterKeyOpensAllOfTheHashingKeys(_ database: KeyRotationTests.Rotated) async throws {
    let access = try await database.make()
    let store = try await access.open(access.key)
    try await Population.settle(in: store)
    let known = try await Population.Knowledge(of: store)
    let wrong = await #expect(throws: AccountStoreError.self) {
      try await access.administration(try newMasterKey()).rotateHashKey(to: try newHashKey()) { _ in }
    }
    #expect(wrong?.code == .wrongMasterKey)
    #expect(try await Population.Knowledge(of: store) == known && store.hashes(of: Population.signedIn).count == 1)
    let same = try #require(HashKey([UInt8](repeating: 9, count: 32)))
    let master = try #require(MasterKey(same.bytes))
    let misuse = await #expect(throws: AccountStoreError.self) {
      try await access.administration(access.key.replacing(master)).rotateHashKey(to: same) { _ in }
    }
    #expect(misuse?.detail.contains("holds a master key") == true)

    for _ in 1...2 { _ = try await access.administration(access.key).rotateHashKey(to: try newHashKey()) { _ in } }
    let newest = try newMasterKey()
    let rotation = try await access.administration(newest.replacing(access.key)).rotateKey { _ in }
    #expect(rotation.accounts > 0 && rotation.left == 0)
    let renewed = try await access.open(newest)
    #expect(try await Population.Knowledge(of: renewed) == known)
    #expect(renewed.hashes(of: Population.signedIn).count == 3)
    for store in [store, renewed] { await store.close() }
    let stale = await #expect(throws: AccountStoreError.self) { _ = try await access.open(access.key) }
    #expect(stale?.code == .wrongMasterKey)
  }

  /// Whoever does not have the new master key cannot know the new hashing key, and does nothing at all.
  @Test(arguments: KeyRotationTests.all)
  func aProgramThatCannotReadTheNewKeyDoesNothing(_ database: KeyRotationTests.Rotated) async throws {
    let access = try await database.make()
    let store = try await access.open(access.key)
    try await Population.settle(in: store)
    let both = try newMasterKey().replacing(access.key)
    _ = try await access.administration(both).rotateKey { _ in }
    _ = try await access.administration(both).rotateHashKey(to: try newHashKey()) { _ in }
    let event = Sample.event("late", of: Population.erased, at: 1, yieldsTo: [.erasure])
    let asking = await #expect(throws: AccountStoreError.self) {
      try await store.standings(of: [event], for: Sample.relay)
    }
    let settling = await #expect(throws: AccountStoreError.self) {
      try await store.settle([event.settled(.setRelay(Sample.enabled(1)))], at: now)
    }
    #expect(asking?.code == .wrongMasterKey && settling?.code == .wrongMasterKey)
    await store.close()
  }

  @Test(arguments: Implementation.all)
  func outcomesOfTheKeyBeforeAreRecognizedAndReconciled(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await Population.settle(in: store)
    let (account, stranger) = (Population.signedIn, Sample.account(99))
    func outcome(of account: Account) -> RecordedOutcome {
      RecordedOutcome(
        account: store.hash(of: account), consumer: Sample.eraser, event: Sample.valid(EventID("said")),
        at: Sample.time(900), ending: .erased(isFinal: true))
    }
    let outcomes = [account, stranger].map(outcome)
    let rotation = try await prepared.rotate(2)
    #expect(try await rotation.begin(try newHashKey()))
    for isRehearsal in [true, false] {
      let error = await #expect(throws: AccountStoreError.self) {
        try await store.reconcile(with: outcomes, isRehearsal: isRehearsal)
      }
      #expect(error?.code == .failed && error?.detail.contains("`siwa store rotate-hash-key`") == true)
    }
    await #expect(throws: AccountStoreError.self) { try await store.recognizes(outcomes) }
    try await rotation.finish()

    #expect(try await store.recognizes([outcomes[0]]))
    #expect(try await !store.recognizes([outcomes[1]]))
    let changed = try await store.reconcile(with: outcomes, isRehearsal: false)
    #expect(changed.erased == [store.hash(of: account)] && changed.unknownKeys == [:])
    #expect(changed.fenced == [store.hash(of: account), store.hash(of: stranger)])
    for account in [account, stranger] {
      let late = Sample.event("late", of: account, at: 901, yieldsTo: [.erasure])
      #expect(try await store.standings(of: [late], for: Sample.relay) == [.superseded(.erased)])
    }
    #expect(try await store.reconcile(with: [account, stranger].map(outcome), isRehearsal: true) == Reconciliation())
    await store.close()
  }

  /// A store that was restored does not know the key; with its file it comes to the same hashes as the one that is lost.
  @Test(arguments: Implementation.all)
  func aBackupFromBeforeTheRotationIsBroughtToTheSameHashes(_ implementation: Implementation) async throws {
    let (lost, prepared) = (try await implementation.prepare(), try await implementation.prepare())
    let (before, restored) = (try await lost.open(), try await prepared.open())
    for store in [before, restored] { try await Population.settle(in: store) }
    let key = try newHashKey()
    _ = try await lost.administration.rotateHashKey(to: key) { _ in }
    let account = Population.signedIn
    let erasure = Sample.event("erasure", of: account, at: 900, severity: 2)
    _ = try await before.settle([erasure.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now)
    let outcome = RecordedOutcome(
      account: before.hash(of: account), consumer: Sample.eraser, event: erasure.id, at: Sample.time(900),
      ending: .erased(isFinal: true))

    #expect(try await !restored.recognizes([outcome]))
    var expected = Reconciliation()
    expected.unknownKeys = [try name(of: key): 1]
    for isRehearsal in [true, false] {
      #expect(try await restored.reconcile(with: [outcome], isRehearsal: isRehearsal) == expected)
    }
    #expect(restored.newest(of: outcome.account) == nil)
    #expect(try await restored.tokens(of: account).isEmpty == false, "nobody knows whom the outcome speaks of")

    _ = try await prepared.administration.rotateHashKey(to: key) { _ in }
    #expect(try await restored.recognizes([outcome]))
    expected = Reconciliation()
    expected.erased = [outcome.account]
    expected.fenced = [outcome.account]
    #expect(try await restored.reconcile(with: [outcome], isRehearsal: false) == expected)
    #expect(try await restored.tokens(of: account).isEmpty)
    for store in [before, restored] { await store.close() }
  }

  /// How a store comes to other keys than the one that is lost: by a new one before the old one's file, or without a file.
  @Test(arguments: Implementation.all, [true, false])
  func outcomesOfOtherKeysBeforeTheSameOneAreCountedAsUnknown(
    _ implementation: Implementation, hasNewKeyFirst: Bool
  ) async throws {
    let (lost, prepared) = (try await implementation.prepare(), try await implementation.prepare())
    let (before, restored) = (try await lost.open(), try await prepared.open())
    for store in [before, restored] { try await Population.settle(in: store) }
    let (other, last) = (try newHashKey(), try newHashKey())
    for key in hasNewKeyFirst ? [last] : [other, last] {
      _ = try await lost.administration.rotateHashKey(to: key) { _ in }
    }
    for key in hasNewKeyFirst ? [other, last] : [last] {
      _ = try await prepared.administration.rotateHashKey(to: key) { _ in }
    }
    let account = Population.signedIn
    let erasure = Sample.event("erasure", of: account, at: 900, severity: 2)
    _ = try await before.settle([erasure.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now)
    let outcome = RecordedOutcome(
      account: before.hash(of: account), consumer: Sample.eraser, event: erasure.id, at: Sample.time(900),
      ending: .erased(isFinal: true))
    #expect(try await !restored.recognizes([outcome]))
    #expect(restored.newest(of: outcome.account) == nil)
    var expected = Reconciliation()
    expected.unknownKeys = [try #require(outcome.account.key): 1]
    #expect(try await restored.reconcile(with: [outcome], isRehearsal: false) == expected)
    for store in [before, restored] { await store.close() }
  }

  /// One that was slow finds its rotation brought to its end by another, and the next one begun.
  @Test(arguments: Implementation.all)
  func aRotationNeverCompletesTheOneAfterIt(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let slow = try await prepared.rotate(10)
    #expect(try await slow.begin(try newHashKey()))
    while try await slow.step() {}
    try await prepared.rotate(10).resume()
    let next = try await prepared.rotate(10)
    #expect(try await next.begin(try newHashKey()))
    let error = await #expect(throws: AccountStoreError.self) { try await slow.complete() }
    #expect(error?.detail.contains("was replaced once more") == true)
    #expect(try await prepared.administration.verify { _ in }.isMoving)
    try await next.finish()
    #expect(try await !prepared.administration.verify { _ in }.isMoving)
  }

  @Test(arguments: Implementation.all)
  func rowsThatWereLeftBehindAreMovedByTheSameCommand(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await Population.settle(in: store)
    let known = try await Population.Knowledge(of: store)
    let key = try newHashKey()
    let rotation = try await prepared.rotate(2)
    #expect(try await rotation.begin(key))
    #expect(try await rotation.step())
    try await prepared.changeHashKeys(.completed)
    let findings = try await prepared.administration.verify { _ in }.findings
    #expect(findings.contains { $0.contains("bear a hash under a former key") }, "\(findings)")
    #expect(try await prepared.administration.rotateHashKey(to: key) { _ in }.rows > 0)
    #expect(try await Population.Knowledge(of: store) == known)
    let report = try await prepared.administration.verify { _ in }
    #expect(report.findings == [] && !report.isMoving)
    await store.close()
  }

  /// As many keys as before, and another one: after a failover to a server that had not heard of the rotation, say.
  @Test(arguments: Implementation.all)
  func aProgramFindsOutThatTheNewestKeyIsAnother(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    let (lost, key) = (try newHashKey(), try newHashKey())
    let account = Sample.account(1)
    _ = try await prepared.administration.rotateHashKey(to: lost) { _ in }
    try await store.check()
    #expect(try await store.relayStates(of: [account]) == [.unknown])
    _ = try await store.tokens(of: account)
    #expect(try store.hash(of: account).key == name(of: lost))

    try await prepared.changeHashKeys(.withoutSecond)
    _ = try await prepared.administration.rotateHashKey(to: key) { _ in }
    let erasure = Sample.event("erasure", of: account, at: 900, severity: 2)
    #expect(
      try await store.settle([erasure.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now) == [.applied])
    #expect(try store.hash(of: account).key == name(of: key))
    let other = try await prepared.open()
    let late = Sample.event("late", of: account, at: 1, yieldsTo: [.erasure])
    for store in [store, other] {
      #expect(try await store.standings(of: [late], for: Sample.relay) == [.superseded(.erased)])
      #expect(try await store.relayStates(of: [account]) == [.erased(since: Sample.time(900))])
      await store.close()
    }
  }

  /// What a program asks first after a rotation that it has not heard of.
  @Test(arguments: Implementation.all)
  func stepsOfErasuresAreListedByAProgramThatKnowsOnlyTheKeyBefore(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let (first, second) = (try await prepared.open(), try await prepared.open())
    let event = Sample.event("erasure", of: Sample.account(1), at: 1)
    func step(_ target: String, _ state: ErasureStep.State, _ detail: String) -> ErasureStep {
      ErasureStep(
        target: target, state: state, before: nil, affected: nil, after: nil, detail: detail, time: Sample.time(1))
    }
    try await first.record([
      (step("shop", .begun, ""), event), (step("invoices", .retained, "law until 2020-01-01"), event),
    ])
    _ = try await prepared.administration.rotateHashKey(to: try newHashKey()) { _ in }
    let open = try await first.openErasures(by: Sample.eraser, after: nil, limit: 10)
    let due = try await second.dueErasures(until: .now, of: nil, after: nil, limit: 10)
    #expect(open.map(\.place.target) == ["shop"] && due.map(\.place.target) == ["invoices"])
    #expect(open.map(\.account) == [first.hash(of: event.account)])
    #expect(due.map(\.account) == [first.hash(of: event.account)])
    for store in [first, second] { await store.close() }
  }

  /// What does not open moves as it is, is named as before, and keeps nobody else from moving.
  @Test(arguments: Implementation.all)
  func whatIsDamagedDoesNotHoldARotationUp(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await Population.settle(in: store)
    try await prepared.breakKeys()
    let findings = try await prepared.administration.verify { _ in }.findings.count
    #expect(findings > 0)
    _ = try await prepared.administration.rotateHashKey(to: try newHashKey()) { _ in }
    #expect(try await prepared.administration.verify { _ in }.findings.count == findings)
    let error = await #expect(throws: AccountStoreError.self) { try await store.tokens(of: Population.signedIn) }
    #expect(error?.code == .sealBroken)
    // It can be erased still.
    let erasure = Sample.event("erasure", of: Population.signedIn, at: 900, severity: 2)
    #expect(
      try await store.settle([erasure.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now) == [.applied])
    await store.close()
  }

  /// Events of people who are erased come again and again while rows are moved: none has an effect.
  @Test(.timeLimit(.minutes(30)), arguments: Implementation.all)
  func fencesHoldWhileConsumersSettleAndRowsAreMoved(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let (store, other) = (try await prepared.open(), try await prepared.open())
    let accounts = (0..<200).map { Sample.account($0) }
    // Made before, and never made anew.
    let erasures = accounts.indices.map { Sample.event("erasure-\($0)", of: accounts[$0], at: 500, severity: 1) }
    let late = accounts.indices.map { Sample.event("late-\($0)", of: accounts[$0], at: 400, yieldsTo: [.erasure]) }
    _ = try await store.settle(
      erasures.map { $0.settled(by: Sample.relay, .eraseAccount(isFinal: true)) }, at: now)

    for round in 0..<2 {
      let key = try newHashKey()
      let rotation = Task { try await prepared.administration.rotateHashKey(to: key) { _ in } }
      let settling = [store, other].enumerated().map { index, store in
        Task { try await settle(late, "\(round)-\(index)", from: index, in: store) }
      }
      for task in settling { try await task.value }
      #expect(try await rotation.value.key == key.id)
    }
    for store in [store, other] {
      #expect(try await store.standings(of: late, for: Sample.eraser).allSatisfy { $0 == .superseded(.erased) })
      #expect(try await store.relayStates(of: accounts).allSatisfy { $0 == .erased(since: Sample.time(500)) })
    }
    let report = try await prepared.administration.verify { _ in }
    #expect(report.findings == [] && report.accounts == 2 * 2 * 40)
    for store in [store, other] { await store.close() }
  }

  /// Settles events that came too late, in groups, and a new one of somebody else after each.
  private func settle(_ late: [EventReference], _ name: String, from first: Int, in store: any AccountStore)
    async throws
  {
    for number in stride(from: first, to: late.count, by: 5) {
      let group = Array(late[number..<min(number + 5, late.count)])
      #expect(try await store.standings(of: group, for: Sample.eraser).allSatisfy { $0.isSuperseded })
      let again = group.map { event in
        Sample.event("\(event.id)-\(name)", of: event.account, hash: event.hash, at: 300)
          .settled(by: Sample.relay, .setRelay(Sample.enabled(300)))
      }
      #expect(try await store.settle(again, at: now).allSatisfy { $0 == .superseded(.newerEvent) })
      let event = Sample.event("new-\(name)-\(number)", of: Sample.newcomer("\(name)-\(number)"), at: 1)
      #expect(try await store.settle([event.settled(.setRelay(Sample.enabled(1)))], at: now) == [.applied])
    }
  }
}

/// What outcomes of a store of these tests name the last of the keys, which it was rotated to one after the other.
private func name(of keys: HashKey...) throws -> HashKeyID {
  let first = try #require(HashKey(Sample.hashKey))
  return try #require(HashChain([first] + keys).newest)
}

extension EventStanding {
  fileprivate var isSuperseded: Bool { if case .superseded = self { true } else { false } }
}

extension Sample {
  fileprivate static func newcomer(_ name: String) -> Account {
    Account(team: account().team, subject: valid(AppleSubject("newcomer-\(name)")))
  }
}
