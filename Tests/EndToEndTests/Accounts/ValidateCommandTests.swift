import AccountEvents
import AccountStore
import AppleSimulator
import EventLoop
import TestSupport
import Testing

/// `siwa accounts validate`, as an operator uses it, against a simulated Apple.
@Loop @Suite(.timeLimit(.minutes(30))) struct ValidateCommandTests {
  private let ada = Person(named: "Ada")
  private let bob = Person(named: "Bob")

  private func account(_ person: Person) throws -> Account {
    Account(team: try #require(TeamID(AccountsStage.team)), subject: try #require(AppleSubject(person.subject)))
  }

  /// Records a sign-in of two days ago, as `siwa accounts import` does.
  private func keep(_ person: Person, _ stage: AccountsStage) async throws {
    let token = NewToken(
      kind: .refresh, client: try #require(ClientID(AccountsStage.app)),
      value: try #require(SecretToken(try await stage.refreshToken(of: person))))
    let store = try await stage.settings.open()
    _ = try await store.recordSignIn(try account(person), at: .now - .seconds(2 * 86_400), tokens: [token])
    await store.close()
  }

  @Test func findsWhatAppleNeverToldOfAndAsksNobodyTwice() async throws {
    try await AccountsStage.run { stage in
      for person in [ada, bob] { try await keep(person, stage) }
      // The notification gets lost.
      _ = try stage.apple.sign(.consentRevoked, of: ada, for: AccountsStage.app)
      let asked = stage.apple.tokensAsked

      let rehearsal = try await stage.siwa("accounts", "validate", "--dry-run")
      #expect(rehearsal.end == .exit(0) && rehearsal.output == "Tokens     2\nDue        2\nNothing was changed\n")
      #expect(stage.apple.tokensAsked == asked)

      let validated = try await stage.siwa("accounts", "validate")
      #expect(validated.end == .exit(0), "\(validated)")
      #expect(
        validated.output == "Good       1\nInvalid    1\nPublished  1\nDoubtful   0\nLeft       0\n", "\(validated)")
      #expect(stage.apple.tokensAsked == asked + 2)
      for secret in [ada.subject, bob.subject] { #expect(!validated.errors.contains(secret)) }
      let again = try await stage.siwa("accounts", "validate")
      #expect(again.end == .exit(0) && again.output.hasPrefix("Good       0\nInvalid    0\n"), "\(again)")
      #expect(stage.apple.tokensAsked == asked + 2)

      let store = try await stage.settings.open()
      let waiting = try await store.takeOutbox(by: "tests", at: .now, until: .now, after: nil, limit: 9)
      let event = try AccountEvent(decoding: try #require(waiting?.records.first).record.value)
      let gone = try account(ada)
      #expect(event.kind == .credentialInvalid && event.account == gone)
      guard case .known(let profile) = try await store.knowledge(of: store.id(of: try account(bob))) else {
        return #expect(Bool(false), "not known")
      }
      #expect(profile.signIns[0].validatedAt != nil)
      await store.close()
    }
  }

  @Test func saysWhatKeepsItFromAsking() async throws {
    try await AccountsStage.run { stage in
      try await keep(ada, stage)
      stage.apple.tokensAnswer = .unavailable
      let doubtful = try await stage.siwa("accounts", "validate")
      #expect(doubtful.end == .exit(1) && doubtful.output.contains("Doubtful   1\nLeft       0\n"), "\(doubtful)")
      let early = try await stage.siwa("accounts", "validate", "--set", "store.sqlite=/nowhere/store.sqlite")
      #expect(early.end != .exit(0) && early.end != .exit(1), "\(early)")
    }
  }
}
