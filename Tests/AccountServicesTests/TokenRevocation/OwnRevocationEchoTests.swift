import AccountEvents
import AccountStore
import AppleSimulator
import ConsumerSupport
import Cryptography
import EventLoop
import TestSupport
import Testing

/// Apple's `consent-revoked` for what we have revoked ourselves.
@Loop @Suite(.timeLimit(.minutes(30))) struct OwnRevocationEchoTests {
  @Test func theEchoOfOurOwnRevocationHasNoEffectAndSaysSo() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      try rig.happen(.accountDeletionRequested, 20)
      try rig.happen(.consentRevoked, 21)
      try await rig.process.untilDone(2)
      #expect(rig.process.done == ["tokens-revoked": 1, "echo": 1])
      #expect(
        try rig.said() == ["event-20 tokens-revoked", "event-20 sessions-ended", "event-21 no-effect: echo"])

      // After a new sign-in it is the person who revokes.
      try await rig.signIn(at: 30)
      try rig.happen(.consentRevoked, 40)
      try await rig.process.untilDone(3)
      #expect(rig.process.done == ["tokens-revoked": 2, "echo": 1])
      #expect(try rig.said().dropFirst(3) == ["event-40 tokens-revoked", "event-40 sessions-ended"])
    }
  }

  /// Of a deletion what Apple had granted while it was asked; of what we revoked before the deletion, perhaps not.
  @Test(arguments: [(19, true), (23, false)])
  func theEchoEndsWhatADeletionHasEndedAndNothingElse(asked: Int, isOfDeletion: Bool) async throws {
    try await RevokerRig.run { rig in
      let (account, client) = (try RevokerRig.account("ada"), try #require(ClientID(RevokerRig.app)))
      try await rig.signIn(at: 10)
      let request = try #require(EventID("a-deletion"))
      _ = try await rig.process.store.requestDeletion(of: account, in: client, as: request, at: .event(asked))
      try await rig.process.store.noteOwnRevocation(of: account, for: client, at: .event(20) + .milliseconds(500))
      try await rig.signIn(at: 20)
      try rig.happen(.consentRevoked, 21)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["echo": 1])
      #expect(try await rig.tokens().isEmpty == isOfDeletion)
      #expect(rig.asked == 0)
    }
  }

  /// Apple's whole seconds put a sign-in of the same second before it.
  @Test func whoSignsInAfterItIsNotTouchedByItsEchoAndCanStillWithdrawConsent() async throws {
    try await RevokerRig.run { rig in
      let (account, client) = (try RevokerRig.account("ada"), try #require(ClientID(RevokerRig.app)))
      let store = rig.process.store
      try await store.noteOwnRevocation(of: account, for: client, at: .event(20))
      let exchange = exchange(of: account, with: client, at: .event(20) + .milliseconds(10), in: store)
      #expect(try await store.begin(exchange) == .begun)
      let token = NewToken(kind: .refresh, client: client, value: try #require(SecretToken("of-the-same-second")))
      _ = try await store.recordSignIn(account, at: .event(20), tokens: [token], of: exchange.request)
      try rig.happen(.consentRevoked, 20)
      try await until { try rig.said().count == 1 }
      #expect(try await rig.tokens().map(\.token) == [token])
      try rig.happen(.consentRevoked, 40)
      try await until { try rig.said().count == 3 }
      #expect(
        try rig.said() == [
          "event-20 no-effect: superseded-by-newer-sign-in", "event-40 tokens-revoked", "event-40 sessions-ended",
        ])
      #expect(try await rig.tokens().isEmpty)
    }
  }

  private func exchange(
    of account: Account, with client: ClientID, at time: Timestamp, in store: any AccountStore
  ) -> CodeExchange {
    func digest(_ byte: UInt8) -> SHA256Digest { SHA256.digest(of: [byte]) }
    return CodeExchange(
      request: digest(1), content: digest(2), code: digest(3), account: store.id(of: account), client: client,
      begunAt: time)
  }

  @Test func theEchoWaitsUntilNoSignInIsUnderWay() async throws {
    try await RevokerRig.run { rig in
      let (account, client) = (try RevokerRig.account("ada"), try #require(ClientID(RevokerRig.app)))
      let store = rig.process.store
      try await rig.signIn(at: 10)
      try await store.noteOwnRevocation(of: account, for: client, at: .event(20))
      let exchange = exchange(of: account, with: client, at: .now, in: store)
      #expect(try await store.begin(exchange) == .begun)
      try rig.happen(.consentRevoked, 21)
      try await rig.process.untilFailed("sign-in-under-way")
      #expect(rig.process.done.isEmpty)
      // It becomes known, and then the person is the one who has ended it.
      let token = NewToken(kind: .refresh, client: client, value: try #require(SecretToken("of-the-sign-in")))
      _ = try await store.recordSignIn(
        account, at: .event(20) + .milliseconds(1), tokens: [token], of: exchange.request, claiming: nil)
      rig.process.alarm.advance(by: .milliseconds(500))
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["tokens-revoked": 1])
      #expect(try await rig.tokens().isEmpty)
    }
  }

  @Test func anAccessTokenAloneProvesNothingUntilAppleTellsOfIt() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10, keeping: [.access])
      try rig.happen(.accountDeletionRequested, 20)
      try await rig.process.untilDone(1)
      #expect(rig.process.done == ["revocation-unproven": 1])
      #expect(try rig.said() == ["event-20 revocation-unproven", "event-20 sessions-ended"])
      #expect(!rig.apple.isAuthorized(Person(named: "ada"), for: RevokerRig.app))
      #expect(try await rig.tokens().isEmpty)
      #expect(rig.apple.revocationsAsked == 1 && rig.asked == 1)

      try rig.happen(.consentRevoked, 21, for: RevokerRig.web)  // of another app: not a proof
      try rig.happen(.consentRevoked, 22)
      try rig.happen(.consentRevoked, 23)
      try await rig.process.untilDone(4)
      #expect(rig.process.done == ["revocation-unproven": 1, "echo": 2, "revocation-proven": 1])
      #expect(
        try rig.said().dropFirst(2) == [
          "event-21 no-effect: echo", "event-22 tokens-revoked", "event-23 no-effect: echo",
        ])
    }
  }

  @Test func oneAppWithoutProofLeavesTheWholeUnproven() async throws {
    try await RevokerRig.run { rig in
      try await rig.signIn(at: 10)
      try await rig.signIn(at: 11, to: RevokerRig.web, keeping: [.access])
      try rig.happen(.accountDeletionRequested, 20)
      try rig.happen(.consentRevoked, 21)
      try rig.happen(.consentRevoked, 22, for: RevokerRig.web)
      try await rig.process.untilDone(3)
      #expect(
        try rig.said() == [
          "event-20 revocation-unproven", "event-20 sessions-ended", "event-21 no-effect: echo",
          "event-22 tokens-revoked",
        ])
    }
  }
}
