import AccountEvents
import AccountStore
import AppleSimulator
import ConsumerSupport
import EventLoop
import TestSupport
import Testing

/// Apple's `consent-revoked` for what we have revoked ourselves.
@Loop @Suite(.timeLimit(.minutes(10))) struct OwnRevocationEchoTests {
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
