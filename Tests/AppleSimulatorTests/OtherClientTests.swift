import AppleSimulator
import EventLoop
import Foundation
import TestSupport
import Testing

/// Somebody else's client of OAuth 2 and OpenID Connect judges the simulator.
@Loop @Suite(.timeLimit(.minutes(30))) struct OtherClientTests {
  private static let redirectURI = "https://shop.example.com/signed-in"

  @Test func authlibSignsInRefreshesAndRevokes() async throws {
    try await Rehearsal.run { rehearsal in
      let (team, client) = (TokensTests.team, TokensTests.client)
      let key = try rehearsal.apple.enroll(team: team, clients: [client])
      rehearsal.apple.register(redirectURIs: [Self.redirectURI], for: client)
      let run = try await Python.run(
        "Tests/AppleSimulatorTests/Python/oauth-client.py",
        [
          "http://\(rehearsal.server.address)", AppleNotification.appleIssuer, client, Self.redirectURI, team, key.id,
        ], input: Array(key.privateKeyPEM.utf8))
      #expect(run.end == .exit(0), "\(run.errors)")
      let person = Person(named: "ada@example.com")
      #expect(String(decoding: run.output, as: UTF8.self) == "\(person.subject) invalid_grant\n")
      #expect(!rehearsal.apple.isAuthorized(person, for: client))
    }
  }
}
