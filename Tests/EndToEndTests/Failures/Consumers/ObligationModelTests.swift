import AccountEvents
import AppleSimulator
import Testing

/// A model that expects the wrong thing proves nothing: cases that a person has worked out.
struct ObligationModelTests {
  private static let address = RelayAddress("a@privaterelay.appleid.com")

  private func event(_ id: String, _ kind: AccountEvent.Kind, at time: Int64) throws -> AccountEvent {
    AccountEvent(
      id: try #require(EventID(id)), team: try #require(TeamID(AppleSide.team)),
      audience: try #require(ClientID(AppleSide.app)),
      subject: try #require(AppleSubject(Person(named: "ada").subject)), kind: kind,
      occurredAt: try #require(Timestamp(milliseconds: time)), issuedAt: try #require(Timestamp(milliseconds: time)))
  }

  private func enabled() throws -> AccountEvent.Kind { .emailEnabled(try #require(Self.address), isPrivate: true) }
  private func disabled() throws -> AccountEvent.Kind { .emailDisabled(try #require(Self.address), isPrivate: true) }

  @Test func ofTwoAnswersInEitherOrderTheLaterOneCounts() throws {
    let (on, off) = (try event("on", try enabled(), at: 5), try event("off", try disabled(), at: 4))
    let off5 = try event("off5", try disabled(), at: 5)
    let address = try #require(Self.address)
    let isOn = ObligationModel.Mail.known(.enabled, address, since: on.occurredAt)
    let isOff = ObligationModel.Mail.known(.disabled, address, since: on.occurredAt)
    let late = ObligationModel([on, off], hasToken: true)
    #expect(late.mail == isOn && late.outcomes == ["on.relay-changed", "off.no-effect.email-relay"] && !late.isOver)
    #expect(ObligationModel([off, on], hasToken: true).outcomes == ["on.relay-changed", "off.relay-changed"])
    for order in [[on, off5], [off5, on]] { #expect(ObligationModel(order, hasToken: true).mail == isOff) }
    let consent = try event("consent", .consentRevoked, at: 5)
    for order in [[on, consent, off5], [consent, off5, on]] {
      #expect(ObligationModel(order, hasToken: true).mail == .unknown)
    }
  }

  @Test func onlyWhatTheAppWasAskedForIsRevokedAtApple() throws {
    let asked = try event("asked", .accountDeletionRequested, at: 5)
    let consent = try event("consent", .consentRevoked, at: 6)
    let deleted = try event("deleted", .accountDelete, at: 7)
    let first = ObligationModel([asked, consent, deleted], hasToken: true)
    #expect(first.isRevoked && first.isOver && first.mail == .erased)
    #expect(
      first.outcomes == [
        "asked.tokens-revoked", "asked.sessions-ended", "asked.account-erased", "asked.relay-changed",
        "consent.no-effect.token-revoker", "consent.account-erased", "deleted.no-token", "deleted.sessions-ended",
        "deleted.account-erased",
        "deleted.relay-changed",
      ])
    #expect(first.alternatives == [["consent.relay-changed", "consent.no-effect.email-relay"]])
    let last = ObligationModel([consent, asked], hasToken: true)
    #expect(!last.isRevoked, "an older event changes nothing, and the consent ended the token")
    #expect(last.outcomes.contains("consent.tokens-revoked") && last.outcomes.contains("asked.no-token"))
    #expect(!ObligationModel([asked], hasToken: false).isRevoked)
    let covered = ObligationModel([deleted, asked, consent], hasToken: true)
    #expect(!covered.isRevoked)
    #expect(covered.outcomes.allSatisfy { $0.hasPrefix("deleted.") || $0.contains(".no-effect.") })
    #expect(covered.outcomes.count == 4 + 5)
  }
}
