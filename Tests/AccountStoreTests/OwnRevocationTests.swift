import AccountEvents
import AccountStore
import Cryptography
import EventLoop
import Testing

/// What we ended ourselves is known until the person comes back, and longer than the person's data.
@Loop @Suite struct OwnRevocationTests {
  private let now = Sample.time(1000)
  private let web = Sample.valid(ClientID("com.example.web"))

  @Test(arguments: Implementation.all)
  func anOwnRevocationIsKnownUntilTheNextSignIn(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      _ = try await store.recordSignIn(account, at: Sample.time(1), tokens: [Sample.token()])
      #expect(try await store.ownRevocations(of: account) == [])
      let request = Sample.event("a", at: 2, severity: 2)
      let settlement = request.settled(
        by: Sample.revoker, .endTokens(issuedUpTo: request.occurredAt),
        .noteOwnRevocation(of: Sample.client, isProven: true), .noteOwnRevocation(of: web, isProven: false))
      #expect(
        try await store.settle([settlement, settlement], at: now) == [.applied, .repeated(request.entry(at: now))])
      let known = [
        OwnRevocation(of: Sample.client, at: Sample.time(2), isProven: true),
        OwnRevocation(of: web, at: Sample.time(2), isProven: false),
      ]
      #expect(try await store.ownRevocations(of: account) == known)
      #expect(try await store.ownRevocations(of: Sample.account(2)) == [])

      let echo = Sample.event("b", at: 3, severity: 1)
      _ = try await store.settle(
        [echo.settled(by: Sample.revoker, .noteOwnRevocation(of: web, isProven: true))], at: now)
      let proven = [known[0], OwnRevocation(of: web, at: Sample.time(3), isProven: true)]
      #expect(try await store.ownRevocations(of: account) == proven)

      // One that was known to be over already.
      _ = try await store.recordSignIn(account, at: Sample.time(2), tokens: [])
      #expect(try await store.ownRevocations(of: account) == proven)
      _ = try await store.recordSignIn(account, at: Sample.time(4), tokens: [])
      #expect(try await store.ownRevocations(of: account) == [])
    }
  }

  /// Apple tells when somebody signed in in whole seconds, and by a clock of its own.
  @Test(arguments: Implementation.all, [10, 20, 25] as [Int64])
  func whatIsBegunAfterItIsLaterAndNothingElse(_ implementation: Implementation, apples: Int64) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let revokedAt = Sample.time(20) + .milliseconds(500)
      /// Returns when a sign-in counts as made that was begun at `begunAt`.
      func signIn(
        _ number: Int, to account: Account, begunAt: Timestamp, apples: Int64 = apples,
        meanwhile: @Loop () async throws -> Void = {}
      ) async throws -> Timestamp {
        let digest = SHA256.digest(of: [UInt8(number)])
        let exchange = CodeExchange(
          request: digest, content: digest, code: digest, account: store.id(of: account), client: Sample.client,
          begunAt: begunAt)
        #expect(try await store.begin(exchange) == .begun)
        try await meanwhile()
        return try await store.recordSignIn(
          account, at: Sample.time(apples), tokens: [Sample.token(number)], of: exchange.request
        ).at
      }
      let (before, after) = (Sample.account(1), Sample.account(2))
      for account in [before, after] { try await store.noteOwnRevocation(of: account, for: web, at: revokedAt) }
      #expect(try await signIn(1, to: before, begunAt: revokedAt) == Sample.time(apples))

      let later = max(Sample.time(apples) + .milliseconds(999), revokedAt + .milliseconds(1))
      #expect(try await signIn(2, to: after, begunAt: revokedAt + .milliseconds(1)) == later)
      #expect(try await store.ownRevocations(of: after) == [])
      #expect(
        try await signIn(3, to: after, begunAt: revokedAt + .milliseconds(2)) == later, "each is, not the first alone")
      #expect(try await store.tokens(of: after).map(\.issuedAt) == [later, later])
      // What a deletion overtakes is no later than that.
      let last = try await signIn(4, to: after, begunAt: Sample.time(29), apples: 40) {
        let id = Sample.valid(EventID("a-deletion"))
        _ = try await store.requestDeletion(of: after, in: web, as: id, at: Sample.time(30))
      }
      #expect(last == Sample.time(30))
    }
  }

  @Test(arguments: Implementation.all)
  func anOwnRevocationOutlivesTheErasureThatFollows(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      _ = try await store.recordSignIn(account, at: Sample.time(1), tokens: [Sample.token()])
      let request = Sample.event("a", at: 2, severity: 2)
      _ = try await store.settle(
        [
          request.settled(by: Sample.revoker, .noteOwnRevocation(of: Sample.client, isProven: true)),
          request.settled(by: Sample.eraser, .eraseAccount(isFinal: true)),
        ], at: now)
      #expect(
        try await store.ownRevocations(of: account) == [
          OwnRevocation(of: Sample.client, at: Sample.time(2), isProven: true)
        ])
      _ = try await store.recordSignIn(account, at: Sample.time(3), tokens: [])
      #expect(try await store.ownRevocations(of: account) == [])
      // The sign-in is remembered beyond the next erasure, too.
      let deletion = Sample.event("b", at: 4, severity: 3)
      _ = try await store.settle([deletion.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: now)
      #expect(try await store.ownRevocations(of: account) == [])
    }
  }

  /// A token that nobody keeps is revoked without an event. What an event has noted stays as it is.
  @Test(arguments: Implementation.all)
  func whatIsRevokedWithoutAnEventIsNotedOnce(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let account = Sample.account()
      let noted = Sample.event("a", at: 2, severity: 2).settled(
        by: Sample.revoker, .noteOwnRevocation(of: web, isProven: false))
      _ = try await store.settle([noted], at: now)
      for time in [5, 6] as [Int64] {
        for client in [Sample.client, web] {
          try await store.noteOwnRevocation(of: account, for: client, at: Sample.time(time))
        }
      }
      #expect(
        try await store.ownRevocations(of: account) == [
          OwnRevocation(of: Sample.client, at: Sample.time(5), isProven: true),
          OwnRevocation(of: web, at: Sample.time(2), isProven: false),
        ])
      #expect(try await store.ownRevocations(of: account, among: [web]).map(\.client) == [web])
      #expect(try await store.knowledge(of: store.id(of: account)) == .unknown, "it makes no account")
      _ = try await store.recordSignIn(account, at: Sample.time(7), tokens: [])
      #expect(try await store.ownRevocations(of: account) == [])
    }
  }
}
