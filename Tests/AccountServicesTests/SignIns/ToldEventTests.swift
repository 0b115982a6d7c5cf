import AccountEvents
import AccountStore
import ConsumerSupport
import Testing

@testable import AccountServices

/// What a caller is told of an event, and of which it is told nothing.
@Suite struct ToldEventTests {
  private let app = "com.example.app"
  private let web = "com.example.web"
  private let other = "org.example.app"

  private func clients(_ names: [String]) throws -> Set<ClientID> {
    Set(try names.map { try #require(ClientID($0)) })
  }

  /// What the stream of a caller with these apps has of an event of `com.example.app`; nil where that is nothing.
  private func told(_ kind: AccountEvent.Kind, to names: [String], groups: [[String]]? = nil) throws -> String? {
    let (own, others) = (try #require(TeamID("A1B2C3D4E5")), try #require(TeamID("F1B2C3D4E5")))
    var teams: [ClientID: TeamID] = [:]
    for client in try clients([app, web]) { teams[client] = own }
    for client in try clients([other]) { teams[client] = others }
    let lists = try groups.map { try $0.map { try clients($0) } }
    let sight = AccountSight(teams: teams, groups: ConsentGroups(lists.map { [own: $0] } ?? [:]))
    let account = try #require(AccountID(bytes: [UInt8](repeating: 0, count: 32)))
    let event = ToldEvent(
      .sample(1, of: "a-person", kind), for: try clients(names), seenBy: sight, identify: { _ in account })
    return event?.text(at: try #require(EventPosition("1.2s.0")))
  }

  private func block(
    _ name: String, _ members: String, clients: String, sub: String = #""sub":"a-person","#
  ) -> String {
    "event: \(name)\nid: 1.2s.0\n"
      + #"data: {"id":"event-1","account":"\#(String(repeating: "A", count: 43))",\#(sub)"team":"A1B2C3D4E5","#
      + #""clientIds":[\#(clients)],"occurredAt":"2023-11-14T22:13:20.001Z"\#(members)}"# + "\n\n"
  }

  @Test func sessionsEndForWhateverEndsThem() throws {
    for kind in [
      AccountEvent.Kind.consentRevoked, .credentialInvalid, .accountDelete, .accountDeletionRequested,
    ] {
      #expect(
        try told(kind, to: [app, other])
          == block("sessions-ended", #","cause":"\#(kind.name)""#, clients: #""com.example.app""#))
    }
  }

  @Test func mailIsToldOfWithoutTheAddress() throws {
    let address = try #require(RelayAddress("h2k7@privaterelay.appleid.com"))
    #expect(
      try told(.emailDisabled(address, isPrivate: true), to: [web])
        == block("relay-changed", #","status":"disabled","maySend":false"#, clients: #""com.example.web""#))
    #expect(
      try told(.emailEnabled(address, isPrivate: true), to: [web, app])
        == block(
          "relay-changed", #","status":"enabled","maySend":true"#, clients: #""com.example.app","com.example.web""#))
  }

  @Test func aTransferIsToldOf() throws {
    #expect(
      try told(.accountTransferred, to: [app]) == block("account-transferred", "", clients: #""com.example.app""#))
  }

  @Test func anotherTeamsCallerIsToldNothing() throws {
    for kind in [AccountEvent.Kind.consentRevoked, .accountDelete, .accountTransferred] {
      #expect(try told(kind, to: [other]) == nil)
      #expect(try told(kind, to: ["com.example.unknown"]) == nil)
    }
  }

  @Test func appsThatDoNotShareConsentAreToldOfDeletionsAlone() throws {
    let address = try #require(RelayAddress("h2k7@privaterelay.appleid.com"))
    for groups in [[[app], [web]], [[web]]] {
      for kind in [
        AccountEvent.Kind.consentRevoked, .credentialInvalid, .accountTransferred,
        .emailDisabled(address, isPrivate: true),
      ] {
        #expect(try told(kind, to: [web], groups: groups) == nil)
        // Of a caller with both apps it concerns one.
        #expect(try told(kind, to: [web, app], groups: groups)?.contains(#""clientIds":["com.example.app"]"#) == true)
      }
      for kind in [AccountEvent.Kind.accountDelete, .accountDeletionRequested] {
        // Whose account it was, they need not know: their own people they know by its id.
        #expect(
          try told(kind, to: [web], groups: groups)
            == block("sessions-ended", #","cause":"\#(kind.name)""#, clients: #""com.example.web""#, sub: ""))
        #expect(try told(kind, to: [app], groups: groups)?.contains(#""sub":"a-person""#) == true)
      }
    }
    #expect(try told(.consentRevoked, to: [web], groups: [[app, web]]) != nil)
  }
}
