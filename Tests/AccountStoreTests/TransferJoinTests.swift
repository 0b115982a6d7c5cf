import AccountEvents
import EventLoop
import Testing

@testable import AccountStore

/// A person comes with an app from one team to another, and their two accounts are one: whichever is first, Apple's answer
/// or the sign-in, and whatever becomes of either account meanwhile.
@Loop @Suite struct TransferJoinTests {
  private let sending = Transfer.sending
  private let receiving = Transfer.receiving
  private let before = Sample.account(1)
  private let after = Transfer.account(1)

  private nonisolated func claim(_ number: Int = 1, isPrivate: Bool = true) -> TransferClaim {
    TransferClaim(
      Transfer.identifier(number), to: Transfer.receiving.client, address: Transfer.address(number),
      isPrivate: isPrivate)
  }

  /// What may happen, in any order.
  enum Step: String, CaseIterable, Sendable {
    case batch, signIn, secondSignIn, erasureOfOld, erasureOfNew, eventForOld
  }

  private func signIn(_ store: any AccountStore, at seconds: Int64, _ number: Int = 1, as claimed: Int? = nil)
    async throws
  {
    let recorded = try await store.recordSignIn(
      Transfer.account(number), at: Sample.time(seconds), tokens: [Sample.token(100 + number)], of: nil,
      claiming: claim(claimed ?? number))
    #expect(recorded.over.isEmpty)
  }

  /// Both plans in one store, with people who have signed in and have mail, and whose identifiers are known.
  private func prepare(_ store: any AccountStore, _ count: Int = 3) async throws {
    try await store.fill(1...count)
    try await store.begin(sending, with: Transfer.sent(1...count))
    try await store.begin(receiving, with: Transfer.received(1...count))
    let results = (1...count).map { Transfer.identified(Int64($0)) }
    #expect(try await store.record(results, of: sending)?.allSatisfy { $0 == .done } == true)
  }

  private func events(_ store: any AccountStore) async throws -> [AccountEvent] {
    let page = try await store.takeOutbox(
      by: "reader", at: Sample.time(1_000_000), until: Sample.time(1_000_001), after: nil, limit: 1000)
    return try #require(page).records.map { try AccountEvent(decoding: $0.record.value) }
  }

  /// The revoker settles that the consent to the app at the team before is over.
  private func endConsent(_ store: any AccountStore, at seconds: Int64, _ number: Int = 1) async throws {
    let account = Sample.account(number)
    let event = Sample.event("over-\(number)", of: account, hash: store.hash(of: account), at: seconds, severity: 1)
    let settlement = event.settled(
      by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(seconds)),
      .tellSuccessor(.credentialInvalid, of: [Transfer.receiving.client]))
    #expect(try await store.settle([settlement], at: Sample.time(20_000)) == [.applied])
  }

  // MARK: Each order

  private nonisolated static let orders: [[Step]] = {
    func permutations(_ steps: [Step]) -> [[Step]] {
      if steps.count < 2 { return [steps] }
      return steps.indices.flatMap { index in
        permutations(steps.enumerated().filter { $0.offset != index }.map(\.element)).map { [steps[index]] + $0 }
      }
    }
    // The second sign-in is the one that comes later.
    return permutations(Step.allCases).filter {
      ($0.firstIndex(of: .signIn) ?? 0) < ($0.firstIndex(of: .secondSignIn) ?? 0)
    }
  }()

  @Test(arguments: Implementation.all, [Step.batch, .signIn, .erasureOfOld, .erasureOfNew, .eventForOld])
  func everyOrderHasItsEnd(_ implementation: Implementation, first: Step) async throws {
    let orders = Self.orders.filter { $0[0] == first }
    try await PreparedStore.with(implementation) { store, administration throws in
      try await prepare(store, orders.count)
      for (index, order) in orders.enumerated() { try await run(order, of: index + 1, store) }
      #expect(try await administration.verify { _ in }.findings == [])
    }
  }

  private func run(_ order: [Step], of number: Int, _ store: any AccountStore) async throws {
    let (before, after) = (Sample.account(number), Transfer.account(number))
    var model = Model()
    for (index, step) in order.enumerated() {
      let seconds = Int64(100 + index)
      model.note(step)
      switch step {
      case .batch: _ = try await store.record([Transfer.found(Int64(number))], of: receiving)
      case .signIn, .secondSignIn: try await signIn(store, at: seconds, number)
      case .erasureOfOld: try await store.erase(before, at: seconds, "gone-old-\(number)")
      case .erasureOfNew: try await store.erase(after, at: seconds, "gone-new-\(number)")
      case .eventForOld: try await endConsent(store, at: seconds, number)
      }
    }
    let words: Comment = "\(order.map(\.rawValue))"
    let said = try await events(store).filter { [before, after].contains($0.account) }
    let told = said.filter { $0.kind == .credentialInvalid }
    #expect(told.map(\.subject) == (model.isSuccessorTold ? [after.subject] : []), words)
    let transferred = said.filter { $0.kind == .accountTransferred }
    #expect(transferred.map(\.subject) == (0..<model.joins).flatMap { _ in [before.subject, after.subject] }, words)
    if case .known(let profile) = try await store.knowledge(of: store.id(of: after)) {
      #expect(model.isThere && (profile.origin?.former == store.id(of: before)) == model.isJoined, words)
      #expect(profile.origin == nil || profile.origin?.fromTeam == Transfer.team, words)
    } else {
      #expect(!model.isThere, words)
    }
    let mail = try await store.relayStates(of: [before, after])
    #expect(mail.map { if case .known = $0 { true } else { false } } == [model.hasOldMail, model.hasNewMail], words)
    let recognized = try await store.recognizedTransfer(of: after, claiming: claim(number))
    #expect(recognized?.key == (model.isRecognized ? Transfer.key(number) : nil), words)
    let row = try await store.users(of: receiving).first { $0.number == number }
    #expect(row?.state == model.row && (row?.hasSignedIn ?? false) == model.isRecognizedBySignIn, words)
  }

  /// What is to come of an order: written anew, and simpler than the store.
  private struct Model {
    /// The user of the receiving plan; nil once they are gone.
    var row: TransferUser.State? = .waiting
    var isRecognizedBySignIn = false
    /// Whether the sending plan has the user.
    var isSent = true
    /// Whether the new account has a row, and whether it is known to come from the old one.
    var (isThere, isJoined) = (false, false)
    /// Whether the new account is erased, with no sign-in since.
    var isErased = false
    var (hasOldMail, hasNewMail) = (true, false)
    var isSuccessorTold = false
    var joins = 0

    var isRecognized: Bool { row == .done || isJoined && isSent }

    mutating func note(_ step: Step) {
      switch step {
      case .batch:
        guard row == .waiting else { return }
        row = isErased ? .refused : .done
        if !isErased { join() }
      case .signIn, .secondSignIn:
        (isThere, isErased) = (true, false)
        if row != nil { (row, isRecognizedBySignIn) = (.done, true) }
        join()
      case .erasureOfOld:
        // Who has come since lives on at the other team.
        if !isRecognizedBySignIn { row = nil }
        (isSent, hasOldMail) = (false, false)
      case .erasureOfNew:
        // A row that does not know the account yet stays.
        if row == .done { (row, isRecognizedBySignIn) = (nil, false) }
        (isThere, isJoined, hasNewMail, isErased) = (false, false, false, true)
      case .eventForOld:
        if isJoined { isSuccessorTold = true }
      }
    }

    /// By what the sending side knows, also where the receiving plan does not have them any more.
    private mutating func join() {
      guard !isJoined, isSent else { return }
      (isThere, isJoined, hasNewMail, hasOldMail) = (true, true, true, false)
      joins += 1
    }
  }

  // MARK: What moves

  @Test(arguments: Implementation.all, [true, false])
  func theStateOfMailMovesWithItsTimeToTheNewAddress(_ implementation: Implementation, isSignIn: Bool) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      let off = Sample.event("off", of: before, at: 20).settled(.setRelay(Sample.disabled(20)))
      #expect(try await store.settle([off], at: Sample.time(21)) == [.applied])
      for _ in 1...2 {
        if isSignIn {
          try await signIn(store, at: 100)
        } else {
          #expect(try await store.record([Transfer.found(1)], of: receiving) == [.done])
        }
        let moved = RelayState(
          status: .disabled, address: Transfer.address(1), isPrivate: true, since: Sample.time(20))
        #expect(try await store.relayStates(of: [before, after]) == [.unknown, .known(moved)])
        #expect(try await events(store).map(\.subject) == [before.subject, after.subject])
      }
      // The new one goes on by itself: a later event counts, an earlier one does not come to anything.
      let on = Sample.event("on", of: after, hash: store.hash(of: after), at: 30).settled(
        .setRelay(RelayState(status: .enabled, address: Transfer.address(1), isPrivate: true, since: Sample.time(30))))
      #expect(try await store.settle([on], at: Sample.time(31)) == [.applied])
      try await signIn(store, at: 200)
      guard case .known(let state) = try await store.relayStates(of: [after])[0] else {
        Issue.record("nothing is known")
        return
      }
      #expect(state.status == .enabled && state.since == Sample.time(30))
    }
  }

  @Test(arguments: Implementation.all)
  func whereNothingIsKnownOfMailAPrivateAddressIsEnabled(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      for number in [1, 2] {
        let forgotten = Sample.event("forgotten-\(number)", of: Sample.account(number), at: 20).settled(.removeRelay)
        #expect(try await store.settle([forgotten], at: Sample.time(21)) == [.applied])
        _ = try await store.recordSignIn(
          Transfer.account(number), at: Sample.time(100), tokens: [], of: nil,
          claiming: claim(number, isPrivate: number == 1))
      }
      let state = RelayState(status: .enabled, address: Transfer.address(1), isPrivate: true, since: Sample.time(100))
      #expect(
        try await store.relayStates(of: [Transfer.account(1), Transfer.account(2)]) == [.known(state), .unknown])
    }
  }

  @Test(arguments: Implementation.all)
  func aListFromElsewhereIsEnoughToRecognizeSomebody(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await store.begin(receiving, with: Transfer.received(1...2))
      // Whoever has not signed in becomes no account by Apple's answer, and nothing is said of them.
      #expect(try await store.record([Transfer.found(1)], of: receiving) == [.done])
      #expect(try await store.knowledge(of: store.id(of: after)) == .unknown)
      #expect(try await events(store).isEmpty)
      for number in [1, 2] {
        for _ in 1...2 { try await signIn(store, at: 100, number) }
        let recognized = try await store.recognizedTransfer(of: Transfer.account(number), claiming: claim(number))
        #expect(recognized == RecognizedTransfer(key: Transfer.key(number), fromTeam: Transfer.team, former: nil))
      }
      #expect(try await events(store).map(\.subject) == [Transfer.account(1).subject, Transfer.account(2).subject])
      let users = try await store.users(of: receiving)
      #expect(users.allSatisfy { $0.state == .done && $0.hasSignedIn && $0.address != nil })
      #expect(try await store.record([Transfer.found(2)], of: receiving) == [.done])
      #expect(try await store.census(of: receiving).signedIn == 2)
    }
  }

  @Test(arguments: Implementation.all)
  func whatAppleSignsIsBelievedAlsoOnceTheSixtyDaysAreOver(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let plan = Transfer.plan("from-the-other", .receiving, acceptedAt: Sample.time(0))
      try await store.begin(plan, with: Transfer.received(1...2))
      let end = TransferPlan.window.components.seconds
      try await signIn(store, at: end + 1, 1)
      try await signIn(store, at: end - 1, 2)
      #expect(try await store.users(of: plan).map(\.state) == [.done, .done])
      #expect(try await store.recognizedTransfer(of: after, claiming: claim()) != nil)
      #expect(try await store.recognizedTransfer(of: Transfer.account(2), claiming: claim(2)) != nil)
    }
  }

  /// Apple leaves the claim out by then; it has named the account to the receiving team before.
  @Test(arguments: Implementation.all, [true, false])
  func whoFirstSignsInOnceTheSixtyDaysAreOverIsRecognized(
    _ implementation: Implementation, isFormerHere: Bool
  ) async throws {
    try await PreparedStore.with(implementation) { store throws in
      if isFormerHere {
        try await prepare(store)
      } else {
        try await store.begin(receiving, with: Transfer.received(1...3))
      }
      #expect(try await store.record([Transfer.found(1)], of: receiving) == [.done])
      let client = receiving.client
      for _ in 1...2 {
        _ = try await store.recordSignIn(after, at: Sample.time(10_000), tokens: [Sample.token(101)])
        let former = isFormerHere ? store.id(of: before) : nil
        #expect(
          try await store.recognizedTransfer(of: after, with: client)
            == RecognizedTransfer(key: Transfer.key(1), fromTeam: Transfer.team, former: former))
      }
      // In another app's database the key is somebody else's.
      #expect(
        try await store.recognizedTransfer(of: after, with: try #require(ClientID("com.example.stayed"))) == nil)
      // Nobody has named the second one, and a third is in no list; the account of before came from nowhere.
      for account in [Transfer.account(2), Transfer.account(9), before] {
        _ = try await store.recordSignIn(account, at: Sample.time(10_000), tokens: [])
        #expect(try await store.recognizedTransfer(of: account, with: client) == nil)
      }
      // A conflict is for a person to look at.
      #expect(try await store.record([Transfer.found(1, as: 9)], of: receiving) == [.conflict])
      #expect(
        try await store.recognizedTransfer(of: after, with: client)?.key == (isFormerHere ? Transfer.key(1) : nil))
      for plan in isFormerHere ? [receiving, sending] : [receiving] {
        #expect(try await store.removePlan(plan.name))
      }
      #expect(try await store.recognizedTransfer(of: after, with: client) == nil)
    }
  }

  // MARK: Conflicts

  @Test(arguments: Implementation.all)
  func twoAccountsNeverBecomeOneSilently(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      try await signIn(store, at: 100, 1)
      // Apple, or somebody, says that the second person is the same.
      try await signIn(store, at: 101, 1, as: 2)
      #expect(try await store.record([Transfer.found(3, as: 1)], of: receiving) == [.conflict])
      // And that the first one is somebody else.
      #expect(try await store.record([Transfer.found(1, as: 9)], of: receiving) == [.conflict])
      let users = try await store.users(of: receiving)
      #expect(users.map(\.state) == [.conflict, .conflict, .conflict])
      #expect(users.map(\.reason) == [.otherAccount, .sameAccount, .sameAccount])
      let states = try await store.relayStates(of: (1...3).map { Sample.account($0) })
      #expect(states == [.unknown, .known(Sample.enabled(2, 2)), .known(Sample.enabled(2, 3))])
      #expect(try await events(store).map(\.subject) == [before.subject, after.subject])
      #expect(try await store.recognizedTransfer(of: after, claiming: claim(2)) == nil)
      var census = TransferCensus()
      (census.conflicts, census.signedIn) = ([.sameAccount: 2, .otherAccount: 1], 1)
      #expect(try await store.census(of: receiving) == census)
    }
  }

  /// Nobody has imported a list: no user of a plan says so.
  @Test(arguments: Implementation.all)
  func aConflictWithoutAListIsToldWhoeverRecordsTheSignIn(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      #expect(try await store.removePlan(receiving.name))
      func signIn(_ number: Int, as identifier: Int) async throws -> TransferRefusal? {
        try await store.recordSignIn(
          Transfer.account(number), at: Sample.time(100), tokens: [], of: nil, claiming: claim(identifier)
        ).conflict
      }
      #expect(try await signIn(1, as: 1) == nil)
      #expect(try await signIn(1, as: 1) == nil, "the same again")
      #expect(try await signIn(2, as: 1) == .otherAccount)
      #expect(try await signIn(1, as: 2) == .sameAccount)
      #expect(try await events(store).map(\.subject) == [before.subject, after.subject], "one was joined")
    }
  }

  @Test(arguments: Implementation.all)
  func aSuccessorIsNotReplaced(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      try await signIn(store, at: 100, 1)
      #expect(try await store.removePlan(receiving.name))
      try await store.begin(receiving, with: Transfer.received(1...1))
      #expect(try await store.record([Transfer.found(1, as: 9)], of: receiving) == [.conflict])
      #expect(try await store.users(of: receiving).map(\.reason) == [.otherAccount])
      #expect(try await events(store).count == 2)
    }
  }

  // MARK: What comes for the account of before

  @Test(arguments: Implementation.all)
  func whatEndsTheOldAccountIsSaidOfItsSuccessorOnce(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      try await prepare(store)
      try await signIn(store, at: 100)
      _ = try await administration.rotateHashKey(to: newHashKey()) { _ in }
      _ = try await store.tokens(of: after)
      _ = try await store.removeFromOutbox(try await events(store).map(\.id))
      // It outlasts the plans.
      for plan in [sending, receiving] { #expect(try await store.removePlan(plan.name)) }
      for _ in 1...2 {
        let deletion = Sample.event("deleted", of: before, hash: store.hash(of: before), at: 150, severity: 3)
        let settled = try await store.settle(
          [
            deletion.settled(by: Sample.revoker, .tellSuccessor(.accountDeletionRequested, of: nil)),
            // Where the person came after the token revoker, the eraser says it; where they came before, the same again.
            deletion.settled(by: Sample.eraser, .tellSuccessor(.accountDeletionRequested, of: nil)),
            Sample.event("other", of: Sample.account(2), hash: store.hash(of: Sample.account(2)), at: 150).settled(
              by: Sample.revoker, .tellSuccessor(.credentialInvalid, of: [Transfer.receiving.client])),
          ], at: Sample.time(160))
        #expect(settled.count == 3)
      }
      let told = try await events(store)
      #expect(told.count == 1)
      let event = try #require(told.first)
      #expect(event.account == after && event.kind == .accountDeletionRequested)
      #expect(event.occurredAt == Sample.time(150) && event.issuedAt == Sample.time(160))
      #expect(event.id.text.hasPrefix("successor-") && event.audience == Sample.client)
      let page = try await store.takeOutbox(
        by: "reader", at: Sample.time(1_000_002), until: Sample.time(1_000_003), after: nil, limit: 9)
      let record = try #require(page?.records.first).record
      #expect(!String(decoding: record.value, as: UTF8.self).contains(before.subject.text))
      let code = record.headers.first { $0.name == EventRecord.requestCodeHeader }
      let request = DeletionRequest(record.value, by: [], because: [])
      #expect(store.isGenuine(String(decoding: try #require(code).value, as: UTF8.self), of: request))
    }
  }

  @Test(arguments: Implementation.all)
  func whatEndsAtAnotherAppStaysWithTheOldAccount(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      try await prepare(store)
      try await signIn(store, at: 100)
      _ = try await store.removeFromOutbox(try await events(store).map(\.id))
      let other = Sample.valid(ClientID("com.example.other"))
      let all: [(String, Set<ClientID>?)] = [("other", [other]), ("both", [other, receiving.client]), ("all", nil)]
      for (index, (name, apps)) in all.enumerated() {
        let event = Sample.event(
          name, of: before, hash: store.hash(of: before), at: 150 + Int64(index), severity: 3)
        let settled = try await store.settle(
          [event.settled(by: Sample.revoker, .tellSuccessor(.credentialInvalid, of: apps))], at: Sample.time(160))
        #expect(settled == [.applied])
        #expect(try await events(store).isEmpty == (name == "other"))
        _ = try await store.removeFromOutbox(try await events(store).map(\.id))
      }
    }
  }

  /// Apple has one identifier for a person, with whichever of the team's apps they come.
  @Test(arguments: Implementation.all)
  func whoComesWithOneOfTwoAppsIsRecognizedAsItsUser(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let other = Sample.valid(
        TransferPlan(
          "another-app", .receiving, team: receiving.team, otherTeam: receiving.otherTeam,
          client: Sample.valid(ClientID("com.example.other")), createdAt: Sample.time(1)))
      try await store.begin(receiving, with: Transfer.received(1...1))
      try await store.begin(
        other, with: [NewTransferUser(key: "the-same-person", transferSubject: Transfer.identifier(1))])
      let claim = TransferClaim(
        Transfer.identifier(1), to: other.client, address: Transfer.address(1), isPrivate: true)
      _ = try await store.recordSignIn(after, at: Sample.time(100), tokens: [], of: nil, claiming: claim)
      #expect(try await store.recognizedTransfer(of: after, claiming: claim)?.key == "the-same-person")
      #expect(try await store.users(of: other).map(\.state) == [.done])
      #expect(try await store.users(of: receiving).map(\.state) == [.waiting])
      #expect(try await store.recognizedTransfer(of: after, claiming: self.claim()) == nil)
      // With a third app nobody knows which of the two it is.
      let third = TransferClaim(
        Transfer.identifier(1), to: Sample.valid(ClientID("com.example.third")), address: nil, isPrivate: false)
      #expect(try await store.recognizedTransfer(of: after, claiming: third) == nil)
    }
  }

  /// The database fails behind the row of the user: neither tokens nor mail nor events are there without the others.
  @Test(arguments: Implementation.all)
  func aSignInThatFailsInTheMiddleHasNotHappened(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await prepare(store)
    try await prepared.run(
      """
      CREATE TRIGGER fault BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'fault'); END
      """,
      """
      CREATE FUNCTION siwa.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'fault'; END $$;
      CREATE TRIGGER fault BEFORE INSERT ON siwa.outbox FOR EACH ROW EXECUTE FUNCTION siwa.fault();
      """)
    await #expect(throws: AccountStoreError.self) { try await signIn(store, at: 100) }
    await #expect(throws: AccountStoreError.self) { try await store.record([Transfer.found(1)], of: receiving) }
    #expect(try await store.tokens(of: after).isEmpty)
    #expect(try await store.relayStates(of: [before, after]) == [.known(Sample.enabled(2)), .unknown])
    #expect(try await store.users(of: receiving).map(\.state) == [.waiting, .waiting, .waiting])
    #expect(try await store.knowledge(of: store.id(of: after)) == .unknown)
    try await prepared.run("DROP TRIGGER fault", "DROP FUNCTION siwa.fault CASCADE")
    try await signIn(store, at: 100)
    #expect(try await store.tokens(of: after).count == 1)
    #expect(try await events(store).count == 2)
    await store.close()
  }

  /// While half of the accounts have moved to a new hashing key.
  @Test(arguments: Implementation.all, [0, 1, 2, 3, 5, 8])
  func aSignInInTheMidstOfARotationFindsBothAccounts(_ implementation: Implementation, steps: Int) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await prepare(store)
    let rotation = try await prepared.rotate(1)
    #expect(try await rotation.begin(newHashKey()))
    for _ in 0..<steps { _ = try await rotation.step() }
    try await signIn(store, at: 100, 1)
    #expect(try await store.record([Transfer.found(2)], of: receiving) == [.done])
    try await endConsent(store, at: 150)
    try await rotation.finish()
    let states = try await store.relayStates(of: [before, after, Sample.account(2), Transfer.account(2)])
    #expect(states.map { $0 == .unknown } == [true, false, true, false])
    #expect(try await events(store).count == 5)
    await store.close()
    #expect(try await prepared.administration.verify { _ in }.findings == [])
  }
}
