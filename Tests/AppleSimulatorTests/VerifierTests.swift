import AccountEvents
import AppleID
import AppleSimulator
import EventLoop
import HTTPClient
import Testing

/// Both sides, written apart from one another, agree: what the simulator says is the right answer is the verifier's.
@Loop @Suite struct VerifierTests {
  nonisolated static let team = TeamID("A1B2C3D4E5")
  nonisolated static let audience = "com.example.app"

  private func verdict(
    _ type: NotificationType, _ faults: [Fault], _ rehearsal: Rehearsal
  ) async throws -> Verdict {
    let verifier = NotificationVerifier(
      issuer: AppleNotification.appleIssuer,
      teams: [try #require(ClientID(Self.audience)): try #require(Self.team)], clockTolerance: .seconds(60))
    let keys = try await rehearsal.get("/auth/keys").body
    let signed = try rehearsal.apple.sign(type, of: Person(named: "Ada"), for: Self.audience, faults: faults)
    return unsafe verifier.verify(
      signed.body.span.bytes, at: .now, keys: try AppleKeySet(reading: keys.span.bytes, at: .now, after: .none))
  }

  @Test(arguments: [
    (NotificationType.emailEnabled, "email-enabled"), (.emailDisabled, "email-disabled"),
    (.consentRevoked, "consent-revoked"), (.accountDelete, "account-delete"), (.accountDeleted, "account-delete"),
  ])
  func believesEveryType(_ type: NotificationType, _ name: String) async throws {
    try await Rehearsal.run { rehearsal in
      guard case .verified(let notification) = try await verdict(type, [], rehearsal),
        case .known(let event) = try #require(notification.events.first)
      else { throw Disbelief() }
      #expect(notification.events.count == 1)
      #expect(event.kind.name == name)
      #expect(event.subject.text == Person(named: "Ada").subject)
      #expect(event.issuedAt - event.occurredAt < .seconds(30))
    }
  }

  @Test(arguments: Fault.allCases, [NotificationType.emailDisabled, .accountDeleted])
  func answersEachFaultAsItShould(_ fault: Fault, _ type: NotificationType) async throws {
    try await Rehearsal.run { rehearsal in
      let answer: Fault.RightAnswer =
        switch try await verdict(type, [fault], rehearsal) {
        case .refused(.bodyTooLarge): .refused(status: 413)
        case .refused, .unknownKey: .refused(status: 400)
        case .verified(let notification):
          notification.events.allSatisfy(\.isKnown) ? .accepted : .quarantined
        }
      #expect(answer == fault.rightAnswer)
    }
  }

  /// What must be refused whole where a key set should be; the other answers are told by their status or their silence.
  nonisolated static let badSets: [KeysAnswer] = [
    .none, .html, .tenMegabytes, .kidTwice, .shortKey, .smallExponent, .malformedKey, .cutOff, .garbage,
  ]

  @Test func passesOverKeysThatSignNothingOfApples() async throws {
    try await Rehearsal.run { rehearsal in
      rehearsal.apple.keysAnswer = .foreignKeys
      for _ in rehearsal.apple.ring.keys {
        guard case .verified = try await verdict(.consentRevoked, [], rehearsal) else { throw Disbelief() }
      }
      let body = try await rehearsal.get("/auth/keys").body
      let set = try unsafe AppleKeySet(reading: body.span.bytes, at: .now, after: .none)
      #expect(Set(set.keyIDs.map(\.text)) == Set(rehearsal.apple.ring.keys.map(\.kid)))
      #expect(set.foreignCount == 3 && set.foreignIDs.map(\.text) == ["encryptr", "pss00001"])
    }
  }

  @Test(arguments: badSets)
  func refusesABadKeySetWhole(_ answer: KeysAnswer) async throws {
    try await Rehearsal.run { rehearsal in
      rehearsal.apple.keysAnswer = answer
      let body = try await rehearsal.get("/auth/keys").body
      #expect(throws: AppleKeySetError.self) {
        try unsafe AppleKeySet(reading: body.span.bytes, at: .now, after: .none)
      }
    }
  }
}

private struct Disbelief: Error {}

extension VerifiedNotification.Event {
  fileprivate var isKnown: Bool {
    if case .known = self { true } else { false }
  }
}
