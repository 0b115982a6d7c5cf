import AccountEvents
import Cryptography
import EventLoop
import Testing

@testable import AccountStore

/// Exchanges of codes, and what applications ask for.
@Loop @Suite struct SignInTests {
  private static func digest(_ text: String) -> SHA256Digest { SHA256.digest(of: Array(text.utf8)) }

  private func exchange(
    _ request: String, _ code: String, content: String = "asked for", at seconds: Int64 = 100,
    by store: any AccountStore
  ) -> CodeExchange {
    CodeExchange(
      request: Self.digest(request), content: Self.digest(content), code: Self.digest(code),
      account: store.id(of: Sample.account()), client: Sample.client, begunAt: Sample.time(seconds))
  }

  @Test(arguments: Implementation.all)
  func onlyOneIsEverToldToAskApple(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let first = exchange("a", "code", by: store)
      #expect(try await store.begin(first) == .begun)
      #expect(try await store.begin(first) == .unfinished)
      #expect(try await store.begin(exchange("a", "code", content: "else", by: store)) == .otherContent)
      #expect(try await store.begin(exchange("a", "another", content: "else", by: store)) == .otherContent)
      #expect(try await store.begin(exchange("b", "code", by: store)) == .codeUsed)
      #expect(try await store.begin(exchange("b", "another", by: store)) == .begun)
      try await store.forget(first)
      #expect(try await store.begin(first) == .begun)
      try await store.end(first, as: .refused)
      #expect(try await store.begin(first) == .finished(.refused, at: Sample.time(100)))
      // What came to an end is not forgotten, but two days later by itself: later than its identity token is believed.
      try await store.forget(first)
      #expect(try await store.begin(first) == .finished(.refused, at: Sample.time(100)))
      #expect(try await store.begin(exchange("c", "late", at: 100 + 25 * 3600, by: store)) == .begun)
      #expect(try await store.begin(first) == .finished(.refused, at: Sample.time(100)))
      #expect(try await store.begin(exchange("d", "third", at: 100 + 48 * 3600 + 1, by: store)) == .begun)
      #expect(try await store.begin(first) == .begun)
    }
  }

  @Test(arguments: Implementation.all)
  func aSignInAndItsExchangeEndTogetherAndOnce(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let (account, request) = (Sample.account(), Self.digest("a"))
      _ = try await store.begin(exchange("a", "code", by: store))
      func record(_ token: Int) async throws -> RecordedSignIn {
        try await store.recordSignIn(account, at: Sample.time(50), tokens: [Sample.token(token)], of: request)
      }
      #expect(try await record(1) == RecordedSignIn(at: Sample.time(50), isNew: true, over: []))
      // Whoever does not know whether it has happened does it again, and is told the same.
      #expect(try await record(1) == RecordedSignIn(at: Sample.time(50), isNew: true, over: []))
      #expect(try await record(2) == RecordedSignIn(at: Sample.time(50), isNew: true, over: []))
      #expect(try await store.tokens(of: account).map(\.token) == [Sample.token(1)])
      // Nor does somebody who has looked before it take it back.
      try await store.end(exchange("a", "code", by: store), as: .lost)
      #expect(try await store.begin(exchange("a", "code", by: store)) == .finished(.new, at: Sample.time(50)))

      _ = try await store.begin(exchange("b", "another", by: store))
      let known = try await store.recordSignIn(
        account, at: Sample.time(60), tokens: [Sample.token(3)], of: Self.digest("b"))
      #expect(known == RecordedSignIn(at: Sample.time(60), isNew: false, over: []))
      #expect(try await store.begin(exchange("b", "another", by: store)) == .finished(.known, at: Sample.time(60)))
    }
  }

  /// What ends the sign-in of the test below.
  enum End: CaseIterable { case erasure, appsAuthorization, everyAuthorization, deletion }

  /// Whoever asks for it again would open a session that nobody ends.
  @Test(arguments: Implementation.all, End.allCases)
  func aSignInThatWasEndedSinceIsOverAndAYoungerOneIsNot(_ implementation: Implementation, end: End) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let (account, web) = (Sample.account(), Sample.valid(ClientID("com.example.web")))
      let first = exchange("a", "code", by: store)
      _ = try await store.begin(first)
      _ = try await store.recordSignIn(account, at: Sample.time(50), tokens: [Sample.token(1)], of: Self.digest("a"))
      // What concerns another app or an earlier sign-in ends nothing of it.
      let others = StoreChange.endTokens(issuedUpTo: Sample.time(90), of: [web])
      let earlier = StoreChange.endTokens(issuedUpTo: Sample.time(49), of: nil)
      _ = try await store.settle([Sample.event("o", at: 90).settled(by: Sample.revoker, others)], at: Sample.time(91))
      _ = try await store.settle([Sample.event("p", at: 91).settled(by: Sample.revoker, earlier)], at: Sample.time(92))
      #expect(try await store.begin(first) == .finished(.new, at: Sample.time(50)))

      switch end {
      case .erasure:
        let erased = Sample.event("e", at: 100).settled(by: Sample.eraser, .eraseAccount(isFinal: true))
        _ = try await store.settle([erased], at: Sample.time(101))
      case .appsAuthorization, .everyAuthorization:
        let apps: Set<ClientID>? = end == .appsAuthorization ? [Sample.client] : nil
        let ended = Sample.event("e", at: 100)
          .settled(by: Sample.revoker, .endTokens(issuedUpTo: Sample.time(100), of: apps))
        _ = try await store.settle([ended], at: Sample.time(101))
      case .deletion:
        let deletion = try await store.requestDeletion(
          of: account, in: Sample.client, as: Sample.valid(EventID("deletion-1")), at: Sample.time(100))
        #expect(deletion?.requestedAt == Sample.time(100))
      }
      #expect(try await store.begin(first) == .finished(.over, at: Sample.time(50)))

      let second = exchange("b", "another", at: 200, by: store)
      #expect(try await store.begin(second) == .begun)
      let anew = try await store.recordSignIn(
        account, at: Sample.time(200), tokens: [Sample.token(2)], of: Self.digest("b"))
      #expect(anew.over.isEmpty)
      #expect(try await store.begin(second) == .finished(anew.isNew ? .new : .known, at: anew.at))
      #expect(try await store.begin(first) == .finished(.over, at: Sample.time(50)), "the younger one is not this one")
    }
  }

  /// Each stands for the same authorization, and each would be validated every day.
  @Test(arguments: Implementation.all)
  func whoSignsInEveryDayHasFewTokens(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      let web = Sample.valid(ClientID("com.example.web"))
      let other = NewToken(kind: .refresh, client: web, value: Sample.valid(SecretToken("token-of-web")))
      _ = try await store.recordSignIn(account, at: Sample.time(1), tokens: [other, Sample.token(1, .access)])
      for day in 1...20 {
        _ = try await store.recordSignIn(account, at: Sample.time(Int64(day)), tokens: [Sample.token(day)])
      }
      let kept = try await store.tokens(of: account).map(\.token)
      #expect(Set(kept) == Set([other, Sample.token(1, .access)] + (16...20).map { Sample.token($0) }))
      // What becomes known late is no newer for that.
      _ = try await store.recordSignIn(account, at: Sample.time(2), tokens: [Sample.token(30)])
      #expect(try await Set(store.tokens(of: account).map(\.token)) == Set(kept))
    }
  }

  @Test(arguments: Implementation.all)
  func aSignInFromBeforeAnErasureIsOverAndStaysSo(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      let erasure = Sample.event("e", at: 20).settled(by: Sample.eraser, .eraseAccount(isFinal: true))
      _ = try await store.settle([erasure], at: Sample.time(30))
      _ = try await store.begin(exchange("a", "code", by: store))
      for _ in 1...2 {
        let recorded = try await store.recordSignIn(
          account, at: Sample.time(20), tokens: [Sample.token()], of: Self.digest("a"))
        #expect(recorded.over == [Sample.token()])
      }
      #expect(try await store.begin(exchange("a", "code", by: store)) == .finished(.over, at: Sample.time(20)))
      #expect(try await store.knowledge(of: store.id(of: account)) == .erased(since: Sample.time(20)))
    }
  }

  @Test(arguments: Implementation.all)
  func whatNothingCameOfIsFoundOldestFirst(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let (first, second, third) = (
        exchange("a", "1", at: 20, by: store), exchange("b", "2", at: 10, by: store),
        exchange("c", "3", at: 30, by: store)
      )
      for exchange in [first, second, third] { _ = try await store.begin(exchange) }
      #expect(try await store.unfinishedExchanges(before: Sample.time(30), limit: 10) == [second, first])
      #expect(try await store.unfinishedExchanges(before: Sample.time(30), limit: 1) == [second])
      try await store.end(second, as: .refused)
      #expect(try await store.unfinishedExchanges(before: Sample.time(31), limit: 10) == [first, third])
      // Not even time makes one forgotten of which nobody knows what came.
      _ = try await store.begin(exchange("d", "4", at: 1_000_000, by: store))
      #expect(try await store.unfinishedExchanges(before: Sample.time(31), limit: 10) == [first, third])
    }
  }

  @Test(arguments: Implementation.all)
  func anApplicationFindsWhatIsKnownOfAnAccount(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      let id = store.id(of: account)
      #expect(try await store.knowledge(of: id) == .unknown)
      _ = try await store.settle([Sample.event("r", at: 5).settled(.setRelay(Sample.enabled(5)))], at: Sample.time(9))
      guard case .known(let told) = try await store.knowledge(of: id) else { return #expect(Bool(false), "not known") }
      #expect(told.account == account && told.signedInAt == nil && told.signIns.isEmpty && told.ended == [])

      let web = Sample.valid(ClientID("com.example.web"))
      let token = NewToken(kind: .refresh, client: web, value: Sample.valid(SecretToken("token-of-web")))
      _ = try await store.recordSignIn(account, at: Sample.time(20), tokens: [Sample.token(1), token])
      _ = try await store.recordSignIn(account, at: Sample.time(30), tokens: [Sample.token(2)])
      _ = try await store.recordSignIn(account, at: Sample.time(40), tokens: [Sample.token(3, .access)])
      let end = StoreChange.endTokens(issuedUpTo: Sample.time(20), of: [web])
      _ = try await store.settle([Sample.event("t", at: 20).settled(by: Sample.revoker, end)], at: Sample.time(41))
      guard case .known(let profile) = try await store.knowledge(of: id) else {
        return #expect(Bool(false), "not known")
      }
      #expect(profile.signedInAt == Sample.time(40))
      #expect(profile.signIns == [AccountProfile.SignIn(client: Sample.client, time: Sample.time(30))])
      #expect(profile.ended == [web])
      #expect(profile.relay == .known(Sample.enabled(5)))
    }
  }

  /// An id is in other people's databases: it must find the account whatever becomes of the hashing key.
  @Test(arguments: Implementation.all)
  func anIDOutlivesRotationsOfTheHashingKey(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await store.fill(1...3)
    let ids = (1...3).map { store.id(of: Sample.account($0)) }
    #expect(ids.map { AccountID($0.description) } == ids)
    for _ in 1...2 {
      let rotation = try await prepared.rotate(1)
      #expect(try await rotation.begin(newHashKey()))
      _ = try await rotation.step()
      // In the middle of it, moved or not.
      for (number, id) in zip(1...3, ids) {
        guard case .known(let profile) = try await store.knowledge(of: id) else { return #expect(Bool(false), "lost") }
        #expect(profile.account == Sample.account(number))
        #expect(profile.signIns.map(\.time) == [Sample.time(1)])
      }
      try await rotation.finish()
      #expect((1...3).map { store.id(of: Sample.account($0)) } == ids)
      guard case .known = try await store.knowledge(of: ids[2]) else { return #expect(Bool(false), "lost") }
    }
    await store.close()
  }
}
