import AccountEvents
import AccountServices
import AccountStore
import Cryptography
import EventLoop
import Foundation
import TestSupport
import Testing

@testable import AppleSimulator

/// The built `siwa-accounts`, where somebody comes with an app from another team.
@Loop @Suite(.timeLimit(.minutes(30))) struct TransferredSignInTests {
  private let ada = Person(named: "Ada")
  private nonisolated static let identifier = "001876.r7f2c91d0a3b64e5f8091a2b3c4d5e6f7"

  @Test func whoComesFromAnotherTeamIsRecognizedAndAgainWhereTheRequestIsRepeated() async throws {
    try await AccountsStage.run { stage in
      let former = try await prepare(stage)
      let token = try claiming(Self.identifier, stage, try await stage.identityToken(of: ada))
      try await stage.accounts { running in
        let body = try stage.request(ada, token: token)
        let first = try await stage.signIn(running, body, key: "one")
        #expect(first.status == 200, "\(first.text)")
        let transfer = try #require(try first.text.object["transfer"] as? [String: String])
        #expect(transfer == ["key": "customer-4711", "fromTeam": AccountsStage.otherTeam, "accountId": former])
        let relay = try #require(try first.text.object["relay"] as? [String: Any])
        #expect(relay["status"] as? String == "disabled", "as it was at the team before")
        #expect(try await stage.signIn(running, body, key: "one").text == first.text)

        let account = try #require(try first.text.object["account"] as? [String: Any])
        let id = try #require(account["id"] as? String)
        let shown = try await stage.ask(
          running, "GET", "/v1/accounts/{id}", target: "/v1/accounts/\(id)", as: stage.tokens.shop)
        let origin = try #require(try shown.text.object["transfer"] as? [String: String])
        #expect(origin == ["fromTeam": AccountsStage.otherTeam, "accountId": former])
        // Who comes from nowhere has none.
        let bob = Person(named: "Bob")
        let other = try await stage.signIn(
          running, try stage.request(bob, token: try await stage.identityToken(of: bob)))
        #expect(try other.status == 200 && other.text.object["transfer"] == nil)
        #expect(!running.program.errors.contains(Self.identifier) && !running.program.errors.contains("customer-4711"))
      }
      let input = try JSONEncoder().encode(stage.answers)
      let check = try await Python.run(
        "Tests/AccountServicesTests/Python/check_openapi.py", ["accounts"], input: [UInt8](input))
      #expect(check.end == .exit(0), "\(check.errors)")
    }
  }

  /// Once the sixty days are over, Apple leaves the claim out.
  @Test func whoComesWithoutAClaimIsRecognizedByWhatAppleHasSaidBefore() async throws {
    try await AccountsStage.run { stage in
      let former = try await prepare(stage, naming: ada)
      try await stage.accounts { running in
        let body = try stage.request(ada, token: try await stage.identityToken(of: ada))
        let first = try await stage.signIn(running, body, key: "one")
        #expect(first.status == 200, "\(first.text)")
        #expect(try first.text.object["transferSub"] == nil)
        let transfer = try #require(try first.text.object["transfer"] as? [String: String])
        #expect(transfer == ["key": "customer-4711", "fromTeam": AccountsStage.otherTeam, "accountId": former])
        #expect(try await stage.signIn(running, body, key: "one").text == first.text)
        #expect(!running.program.errors.contains("customer-4711"))
      }
      let input = try JSONEncoder().encode(stage.answers)
      let check = try await Python.run(
        "Tests/AccountServicesTests/Python/check_openapi.py", ["accounts"], input: [UInt8](input))
      #expect(check.end == .exit(0), "\(check.errors)")
    }
  }

  /// Both teams in one store: the one before knows the person, and has moved them; Apple may have named the `person` to the
  /// other one. Returns the id of their account at the team before.
  private func prepare(_ stage: AccountsStage, naming person: Person? = nil) async throws -> String {
    let (team, before) = (
      try #require(TeamID(AccountsStage.team)), try #require(TeamID(AccountsStage.otherTeam))
    )
    let client = try #require(ClientID(AccountsStage.app))
    let identifier = try #require(TransferSubject(Self.identifier))
    let account = Account(team: before, subject: try #require(AppleSubject("ada-at-the-team-before")))
    let store = try await stage.settings.open()
    _ = try await store.recordSignIn(account, at: .now, tokens: [])
    let mail = EventReference(
      id: try #require(EventID("mail")), account: account, hash: store.hash(of: account), occurredAt: .now,
      origin: EventOrigin(topic: Topic.accountEvents.name, partition: 0, offset: 0),
      weight: EventWeight(severity: 0, tie: 0), yieldsTo: [])
    let state = RelayState(status: .disabled, address: nil, isPrivate: true, since: .now)
    _ = try await store.settle(
      [Settlement(of: mail, by: .emailRelay, outcome: "state-kept", changes: [.setRelay(state)])], at: .now)
    let sending = try #require(
      TransferPlan("sending", .sending, team: before, otherTeam: team, client: client, createdAt: .now))
    let receiving = try #require(
      TransferPlan("receiving", .receiving, team: team, otherTeam: before, client: client, createdAt: .now))
    for plan in [sending, receiving] { #expect(try await store.add(plan) == nil) }
    #expect(try await store.addAccounts(to: sending, after: nil, limit: 10).new == 1)
    let user = NewTransferUser(key: "customer-4711", transferSubject: identifier)
    #expect(try await store.add([user], to: receiving) == 1)
    let lease = Lease(name: sending.lease, holder: "test", until: 0)
    #expect(try await store.take(lease, after: nil))
    let recorded = try await store.record(
      [TransferResult(1, .identifier(identifier))], of: sending, under: lease, at: .now)
    #expect(recorded == [.done])
    if let person {
      let lease = Lease(name: receiving.lease, holder: "test", until: 0)
      #expect(try await store.take(lease, after: nil))
      let subject = try #require(AppleSubject(person.subject))
      let answer = TransferResult(1, .account(subject, address: nil, isPrivate: false))
      #expect(try await store.record([answer], of: receiving, under: lease, at: .now) == [.done])
    }
    let id = store.id(of: account).description
    await store.close()
    return id
  }

  /// The same identity token, with the claim that Apple adds in the sixty days.
  private func claiming(_ identifier: String, _ stage: AccountsStage, _ token: String) throws -> String {
    let parts = token.split(separator: ".").map(String.init)
    let claims = String(decoding: try #require(Base64URL.decode(parts[1])), as: UTF8.self)
    let key = stage.apple.nextKey()
    let header = #"{"kid":"\#(key.kid)","alg":"RS256"}"#
    let input =
      Base64URL.encode(Array(header.utf8)) + "."
      + Base64URL.encode(Array((claims.dropLast() + #","transfer_sub":"\#(identifier)"}"#).utf8))
    return input + "." + Base64URL.encode(try key.privateKey.signRS256(Array(input.utf8)))
  }
}
