import AccountEvents
import Cryptography
import EventLoop
import Testing

@testable import AccountStore

/// What a store keeps of transfers of users between teams, and what it makes of Apple's answers.
@Loop @Suite struct TransferTests {
  private let sending = Transfer.sending
  private let receiving = Transfer.receiving

  // MARK: Plans

  @Test(arguments: Implementation.all)
  func aPlanIsThereOnceAndForgetsNothingThatIsNotedOfIt(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      #expect(try await store.add(sending) == nil)
      #expect(try await store.add(Transfer.plan(sending.name, .receiving, at: 2)) == sending)
      #expect(try await store.add(receiving) == nil)
      #expect(try await store.transferPlans() == [receiving, sending])
      // Two processes note different things.
      var (accepted, tried) = (sending, sending)
      (accepted.acceptedAt, tried.triedAt) = (Sample.time(5), Sample.time(6))
      #expect(try await store.update(accepted))
      #expect(try await store.update(tried))
      accepted.triedAt = Sample.time(6)
      #expect(try await store.transferPlans() == [receiving, accepted])
      #expect(try await !store.update(Transfer.plan("none", .sending)))
      #expect(try await store.removePlan(sending.name))
      #expect(try await !store.removePlan(sending.name))
      #expect(try await store.transferPlans() == [receiving])
    }
  }

  @Test(arguments: Implementation.all)
  func whoeverHasAnotherPlanOfThatNameInMindChangesNothing(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.begin(sending, with: Transfer.sent(1...2))
      #expect(try await store.removePlan(sending.name))
      #expect(try await store.record([Transfer.identified(1)], of: sending) == nil, "the lease went with the plan")
      let later = Transfer.plan(sending.name, .sending, at: 2)
      try await store.begin(later, with: Transfer.sent(3...4))
      await #expect(throws: AccountStoreError.self) { try await store.record([Transfer.identified(1)], of: sending) }
      await #expect(throws: AccountStoreError.self) { try await store.add(Transfer.sent(5...5), to: sending) }
      await #expect(throws: AccountStoreError.self) { try await store.census(of: sending) }
      var expected = TransferCensus()
      expected.waiting = 2
      #expect(try await store.census(of: later) == expected)
      await #expect(throws: AccountStoreError.self) { try await store.add(Transfer.received(5...5), to: later) }
      await #expect(throws: AccountStoreError.self) { try await store.record([Transfer.found(1)], of: later) }
    }
  }

  /// Killed when the first thousands of users are gone.
  @Test(arguments: Implementation.all)
  func aRemovalThatIsKilledInTheMiddleIsEndedByTheNext(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    let count = Int(SealedTransferPlan.removal) + 1000
    try await store.begin(receiving, with: Transfer.received(1...count))
    try await store.begin(sending, with: Transfer.sent(1...2))
    try await prepared.run(
      """
      CREATE TRIGGER fault BEFORE DELETE ON transfer_user WHEN old.number > 5000 BEGIN SELECT RAISE(ABORT, 'fault'); END
      """,
      """
      CREATE FUNCTION siwa.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'fault'; END $$;
      CREATE TRIGGER fault BEFORE DELETE ON siwa.transfer_user FOR EACH ROW WHEN (old.number > 5000)
        EXECUTE FUNCTION siwa.fault();
      """)
    for _ in 1...2 {
      await #expect(throws: AccountStoreError.self) { try await store.removePlan(receiving.name) }
      let plans = try await store.transferPlans()
      #expect(plans.map(\.name) == [receiving.name, sending.name])
      #expect(plans.map(\.isBeingRemoved) == [true, false])
      #expect(try await store.census(of: receiving).waiting == 1000)
    }
    // Nobody goes on with it, its users are nobody, and it is in nobody's way.
    #expect(try await store.add(receiving)?.isBeingRemoved == true)
    var accepted = receiving
    accepted.acceptedAt = Sample.time(5)
    #expect(try await !store.update(accepted))
    #expect(try await store.take(Transfer.lease(receiving), after: nil), "nobody holds its lease any more")
    let last = Transfer.found(Int64(count))
    await #expect(throws: AccountStoreError.self) { try await store.record([last], of: receiving) }
    await #expect(throws: AccountStoreError.self) { try await store.add(Transfer.received([count + 1]), to: receiving) }
    await #expect(throws: AccountStoreError.self) { try await store.users(of: receiving) }
    let claim = TransferClaim(
      Transfer.identifier(count), to: receiving.client, address: nil, isPrivate: false)
    _ = try await store.recordSignIn(
      Transfer.account(count), at: Sample.time(100), tokens: [], of: nil, claiming: claim)
    #expect(try await store.recognizedTransfer(of: Transfer.account(count), claiming: claim) == nil)
    #expect(try await prepared.administration.verify { _ in }.findings == [])
    // The next one ends it.
    try await prepared.run("DROP TRIGGER fault", "DROP FUNCTION siwa.fault CASCADE")
    #expect(try await store.removePlan(receiving.name))
    #expect(try await !store.removePlan(receiving.name))
    #expect(try await store.transferPlans() == [sending])
    #expect(try await store.users(of: sending).count == 2)
    #expect(try await store.add(receiving) == nil)
    #expect(try await store.users(of: receiving).isEmpty)
    await store.close()
  }

  @Test(arguments: Implementation.all)
  func aFileIsImportedOnce(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let digest = SHA256.digest(of: [1])
      #expect(try await store.add(receiving) == nil)
      #expect(try await !store.hasImported(digest, into: receiving))
      #expect(try await store.noteImport(digest, into: receiving, at: Sample.time(2)))
      #expect(try await store.hasImported(digest, into: receiving))
      #expect(try await !store.noteImport(digest, into: receiving, at: Sample.time(3)))
      #expect(try await store.noteImport(SHA256.digest(of: [2]), into: receiving, at: Sample.time(4)))
    }
  }

  // MARK: Users

  @Test(arguments: Implementation.all)
  func aUserIsAddedOnceAndKeepsTheirPlace(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      for plan in [sending, receiving] {
        func users(_ numbers: [Int]) -> [NewTransferUser] {
          plan.side == .sending ? Transfer.sent(numbers) : Transfer.received(numbers)
        }
        #expect(try await store.add(plan) == nil)
        #expect(try await store.add(users([3, 1, 3]), to: plan) == 2)
        #expect(try await store.add(users([1, 2, 3]), to: plan) == 1)
        #expect(try await store.add([], to: plan) == 0)
        let found = try await store.users(of: plan)
        #expect(found.map(\.number) == [1, 2, 3] && found.map(\.key) == [3, 1, 2].map(Transfer.key))
        let expected = users([3, 1, 2])
        #expect(found.map(\.subject) == expected.map(\.subject))
        #expect(found.map(\.transferSubject) == expected.map(\.transferSubject))
        #expect(found.allSatisfy { $0.state == .waiting && $0.reason == nil && !$0.hasSignedIn })
        #expect(try await store.transferUsers(of: plan, in: .waiting, after: 1, limit: 1).map(\.number) == [2])
        #expect(try await store.transferUsers(of: plan, in: .done, after: 0, limit: 9).isEmpty)
        let behind = try await store.add(users([4]), to: plan, knowing: 2)
        #expect(behind == nil, "somebody has added a third user meanwhile")
        let added = try await store.add(users([3, 4]), to: plan, knowing: 3)
        #expect(added?.new == 1 && added?.last == 4)
      }
    }
  }

  @Test(arguments: Implementation.all)
  func whoIsThereKeepsTheFirstKey(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      for plan in [sending, receiving] {
        let users = plan.side == .sending ? Transfer.sent([1, 2, 3]) : Transfer.received([1, 2, 3])
        let renamed: [NewTransferUser]
        if plan.side == .sending {
          renamed = (1...3).map { NewTransferUser(key: "other-\($0)", subject: Sample.account($0).subject) }
        } else {
          renamed = (1...3).map { NewTransferUser(key: "other-\($0)", transferSubject: Transfer.identifier($0)) }
        }
        #expect(try await store.add(plan) == nil)
        #expect(try await store.add(Array(users.prefix(2)), to: plan) == 2)
        #expect(try await store.add(Array(renamed.prefix(2)), to: plan) == 0)
        let known = try await store.knownKeys(of: renamed.reversed() + [renamed[0]], in: plan)
        #expect(known == [nil, Transfer.key(2), Transfer.key(1), Transfer.key(1)])
        #expect(try await store.knownKeys(of: [], in: plan) == [])
      }
    }
  }

  @Test(arguments: Implementation.all)
  func allAccountsOfTheTeamAreAddedPageByPage(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.fill(1...7)
      _ = try await store.recordSignIn(Transfer.account(), at: Sample.time(1), tokens: [])
      #expect(try await store.add(sending) == nil)
      var (new, place): (Int, AccountID?) = (0, nil)
      repeat {
        let page = try await store.addAccounts(to: sending, after: place, limit: 2)
        (new, place) = (new + page.new, page.place)
      } while place != nil
      #expect(new == 7)
      let users = try await store.users(of: sending)
      #expect(Set(users.compactMap(\.subject)) == Set((1...7).map { Sample.account($0).subject }))
      for user in users {
        let account = Account(team: Transfer.team, subject: try #require(user.subject))
        #expect(user.key == store.id(of: account).description)
      }
      let again = try await store.addAccounts(to: sending, after: nil, limit: 100)
      #expect(again.new == 0 && again.place == nil)
    }
  }

  @Test(arguments: Implementation.all)
  func manyWhoAddTheSameUsersAddThemOnce(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let stores = [try await prepared.open(), try await prepared.open()]
    #expect(try await stores[0].add(sending) == nil)
    let new = try await withThrowingTaskGroup(of: Int.self) { group in
      for (index, store) in stores.enumerated() {
        for page in 0..<4 {
          let numbers = page * 50..<page * 50 + 100
          let users = Transfer.sent(index == 0 ? Array(numbers) : Array(numbers.reversed()))
          group.addTask(executorPreference: Loop.executor) { try await store.add(users, to: Transfer.sending) }
        }
      }
      var new = 0
      for try await count in group { new += count }
      return new
    }
    #expect(new == 250)
    let users = try await stores[0].users(of: sending)
    #expect(users.map(\.number) == Array(1...250) && Set(users.compactMap(\.subject)).count == 250)
    for store in stores { await store.close() }
  }

  // MARK: Answers

  @Test(arguments: Implementation.all)
  func whatAppleSaysOfTheSendingSideIsWrittenOnce(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.begin(sending, with: Transfer.sent(1...6))
      let useless = TransferResult(4, .identifier(Sample.valid(TransferSubject(Sample.account(4).subject.text))))
      let results = [
        Transfer.identified(1), TransferResult(2, .refused(.consentWithdrawn)), Transfer.identified(3, as: 1), useless,
        Transfer.identified(7),
      ]
      let states: [TransferUser.State] = [.done, .refused, .refused, .refused, .refused]
      for _ in 1...2 {
        #expect(try await store.record(results, of: sending) == states)
        let users = try await store.users(of: sending)
        #expect(users.map(\.state) == [.done, .refused, .refused, .refused, .waiting, .waiting])
        #expect(users.map(\.reason) == [nil, .consentWithdrawn, .uselessAnswer, .uselessAnswer, nil, nil])
        #expect(users[0].transferSubject == Transfer.identifier(1))
        #expect(users.dropFirst().allSatisfy { $0.transferSubject == nil })
        #expect(users.map(\.key) == (1...6).map(Transfer.key))
      }
      var census = TransferCensus()
      (census.waiting, census.done) = (2, 1)
      census.refused = [.consentWithdrawn: 1, .uselessAnswer: 2]
      #expect(try await store.census(of: sending) == census && census.users == 6)
      // What stands may be exported already; who was refused may have consented anew.
      let later = [
        Transfer.identified(1, as: 9), TransferResult(1, .refused(.consentWithdrawn)), Transfer.identified(2),
      ]
      #expect(try await store.record(later, of: sending) == [.done, .done, .done])
      let users = try await store.transferUsers(of: sending, in: .done, after: 0, limit: 9)
      #expect(users.map(\.transferSubject) == [Transfer.identifier(1), Transfer.identifier(2)])
    }
  }

  @Test(arguments: Implementation.all)
  func whatAppleSaysOfTheReceivingSideIsWrittenOnce(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.begin(receiving, with: Transfer.received(1...5))
      let plain = TransferResult(2, .account(Transfer.account(2).subject, address: nil, isPrivate: false))
      let results = [
        Transfer.found(1), plain, Transfer.found(3, as: 1), TransferResult(4, .refused(.consentWithdrawn)),
      ]
      for _ in 1...2 {
        #expect(try await store.record(results, of: receiving) == [.done, .done, .conflict, .refused])
        let users = try await store.users(of: receiving)
        let subjects: [AppleSubject?] = [1, 2, 1].map { Transfer.account($0).subject }
        #expect(users.map(\.subject) == subjects + [nil, nil])
        #expect(users.map(\.reason) == [nil, nil, .sameAccount, .consentWithdrawn, nil])
        #expect(users.map(\.address) == [Transfer.address(1), nil, Transfer.address(1), nil, nil])
        #expect(users.map(\.isPrivate) == [true, false, true, false, false])
        let identifiers: [TransferSubject?] = (1...5).map { Transfer.identifier($0) }
        #expect(users.map(\.transferSubject) == identifiers)
      }
      // Apple has named another account of the same person: somebody has to look at it.
      #expect(try await store.record([Transfer.found(2, as: 7)], of: receiving) == [.conflict])
      #expect(try await store.record([plain], of: receiving) == [.conflict])
      var census = TransferCensus()
      (census.waiting, census.done) = (1, 1)
      (census.refused, census.conflicts) = ([.consentWithdrawn: 1], [.sameAccount: 1, .otherAccount: 1])
      #expect(try await store.census(of: receiving) == census)
    }
  }

  @Test(arguments: Implementation.all)
  func whatIsDecidedOfAConflictIsKeptWithTheUser(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      func decision(_ choice: TransferDecision.Choice) -> TransferDecision {
        TransferDecision(choice, by: "support", because: "they have shown it", at: Sample.time(7))
      }
      try await store.begin(receiving, with: Transfer.received(1...3))
      #expect(
        try await store.record([Transfer.found(1), Transfer.found(2, as: 1)], of: receiving) == [.done, .conflict])
      for number in [1, 3, 4] as [Int64] {
        #expect(try await store.note(decision(.keepNew), of: number, in: receiving) == nil, "no conflict")
      }
      let before = try await store.users(of: receiving)
      for choice in TransferDecision.Choice.allCases {
        let decided = try #require(try await store.note(decision(choice), of: 2, in: receiving))
        #expect(decided.state == .conflict && decided.reason == .sameAccount && decided.decision == decision(choice))
        var expected = before
        expected[1].decision = decision(choice)
        #expect(try await store.users(of: receiving) == expected, "nothing else has changed")
      }
      // Apple says the same again.
      #expect(try await store.record([Transfer.found(2, as: 1)], of: receiving) == [.conflict])
      #expect(try await store.users(of: receiving)[1].decision == decision(.separate))
      #expect(try await administration.verify { _ in }.findings == [])
    }
  }

  @Test(arguments: Implementation.all)
  func whoeverHasLostTheLeaseWritesNothing(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let (one, other) = (try await prepared.open(), try await prepared.open())
    try await one.begin(sending, with: Transfer.sent(1...2))
    #expect(try await one.record([Transfer.identified(1)], of: sending) == [.done])
    let seen = try await other.lease(sending.lease)
    #expect(seen?.until == (Sample.time(10) + Lease.length).milliseconds, "it was renewed")
    #expect(try await other.take(Transfer.lease(sending, of: "b"), after: seen))
    #expect(try await one.record([Transfer.identified(2)], of: sending) == nil)
    #expect(try await one.record([], of: sending) == nil)
    #expect(try await other.users(of: sending).map(\.state) == [.done, .waiting])
    for store in [one, other] { await store.close() }
  }

  /// The third of five fails in the database, when two are written.
  @Test(arguments: Implementation.all)
  func whereTheDatabaseFailsInTheMiddleNothingHasHappened(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await store.begin(sending, with: Transfer.sent(1...5))
    let results = (1...5).map { Transfer.identified($0) }
    try await prepared.run(
      """
      CREATE TRIGGER fault BEFORE UPDATE ON transfer_user WHEN new.number = 3 BEGIN SELECT RAISE(ABORT, 'fault'); END;
      CREATE TRIGGER fault_of_adding BEFORE INSERT ON transfer_user WHEN new.number = 8
      BEGIN SELECT RAISE(ABORT, 'fault'); END;
      """,
      """
      CREATE FUNCTION siwa.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'fault'; END $$;
      CREATE TRIGGER fault BEFORE UPDATE ON siwa.transfer_user FOR EACH ROW WHEN (new.number = 3)
      EXECUTE FUNCTION siwa.fault();
      CREATE TRIGGER fault_of_adding BEFORE INSERT ON siwa.transfer_user FOR EACH ROW WHEN (new.number = 8)
      EXECUTE FUNCTION siwa.fault();
      """)
    await #expect(throws: AccountStoreError.self) { try await store.record(results, of: sending) }
    await #expect(throws: AccountStoreError.self) { try await store.add(Transfer.sent(6...9), to: sending) }
    #expect(try await store.users(of: sending).map(\.state) == [.waiting, .waiting, .waiting, .waiting, .waiting])
    try await prepared.run(
      "DROP TRIGGER fault; DROP TRIGGER fault_of_adding", "DROP FUNCTION siwa.fault CASCADE")
    #expect(try await store.record(results, of: sending) == [.done, .done, .done, .done, .done])
    #expect(try await store.add(Transfer.sent(6...9), to: sending) == 4)
    #expect(try await store.users(of: sending).map(\.number) == Array(1...9))
    await store.close()
  }

  // MARK: Keys

  @Test(arguments: Implementation.all)
  func aNewHashingKeyChangesNothing(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      try await store.fill(1...3)
      try await store.begin(sending, with: Transfer.sent(1...4))
      try await store.begin(receiving, with: Transfer.received(1...4))
      _ = try await store.record([Transfer.identified(1)], of: sending)
      let before = try await store.users(of: sending)
      _ = try await administration.rotateHashKey(to: newHashKey()) { _ in }
      #expect(try await store.users(of: sending) == before)
      #expect(try await store.add(Transfer.sent(1...5), to: sending) == 1)
      #expect(try await store.add(Transfer.received(1...5), to: receiving) == 1)
      #expect(try await store.addAccounts(to: sending, after: nil, limit: 2).new == 0)
      #expect(try await store.record([Transfer.identified(2, as: 1)], of: sending) == [.refused])
      try await store.erase(Sample.account(1), at: 50)
      #expect(try await store.users(of: sending).map(\.number) == [2, 3, 4, 5])
      #expect(try await store.users(of: receiving).map(\.number) == [2, 3, 4, 5])
      #expect(try await administration.verify { _ in }.findings == [])
    }
  }

  @Test(arguments: Implementation.all)
  func accountsAreNotAddedWhileTheyMove(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await store.fill(1...3)
    #expect(try await store.add(sending) == nil)
    let rotation = try await prepared.rotate(1)
    #expect(try await rotation.begin(newHashKey()))
    _ = try await rotation.step()
    let error = await #expect(throws: AccountStoreError.self) {
      try await store.addAccounts(to: sending, after: nil, limit: 10)
    }
    #expect(error?.code == .unavailable)
    try await rotation.finish()
    #expect(try await store.addAccounts(to: sending, after: nil, limit: 10).new == 3)
    await store.close()
  }

  @Test(arguments: KeyRotationTests.all)
  func aNewMasterKeyOpensWhatTheOldOneHasSealed(_ database: KeyRotationTests.Rotated) async throws {
    let access = try await database.make()
    let old = try await access.open(access.key)
    try await old.begin(sending, with: Transfer.sent(1...3))
    await old.close()
    let newest = try newMasterKey()
    let rotation = try await access.administration(newest.replacing(access.key)).rotateKey { _ in }
    #expect(rotation.left == 0)
    let store = try await access.open(newest)
    #expect(try await store.users(of: sending).map(\.key) == (1...3).map(Transfer.key))
    await store.close()
    let report = try await access.administration(newest).verify { _ in }
    #expect(report.findings == [] && report.transferUsers == 3)
    let former = try await access.administration(newest.replacing(access.key)).rotateKey { _ in }
    #expect(former == KeyRotation())
  }

  @Test(arguments: Implementation.all)
  func aUserWhoseRowWasMovedIsNamedAndHoldsUpNobody(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await store.begin(sending, with: Transfer.sent(1...4))
    try await prepared.run(
      """
      UPDATE transfer_user SET person = (SELECT person FROM transfer_user WHERE number = 1) WHERE number = 2;
      UPDATE transfer_user SET account = zeroblob(32) WHERE number = 3
      """,
      """
      UPDATE siwa.transfer_user SET person = (SELECT person FROM siwa.transfer_user WHERE number = 1) WHERE number = 2;
      UPDATE siwa.transfer_user SET account = sha256('another') WHERE number = 3
      """)
    let users = try await store.users(of: sending)
    #expect(users.map(\.reason) == [nil, .damaged, .damaged, nil] && users[1].subject == nil && users[2].key == "")
    let results = (1...4).map { Transfer.identified($0) }
    #expect(try await store.record(results, of: sending) == [.done, .refused, .refused, .done])
    #expect(try await store.census(of: sending).refused == [.damaged: 2])
    await store.close()
    let report = try await prepared.administration.verify { _ in }
    #expect(report.transferUsers == 4)
    #expect(
      report.findings == [
        "user 2 of the transfer \(sending.name): siwa transfer user: the seal is broken",
        "user 3 of the transfer \(sending.name): the row belongs to another user",
      ])
  }
}
