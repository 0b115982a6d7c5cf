package import AccountEvents
package import Configuration

/// Which apps of a team share a person's consent: at Apple, those that are grouped under one primary App ID.
package struct ConsentGroups: Configurable, Sendable {
  private var groups: [TeamID: [Set<ClientID>]]
  /// The team of each app that is ours; empty where nobody has said so.
  package var teams: [ClientID: TeamID] = [:]

  /// The groups of each team; one that is not named is one group as a whole.
  package init(_ groups: [TeamID: [Set<ClientID>]]) { self.groups = groups }

  /// Reads `teams.TEAM.groups`.
  package init(reading settings: inout Settings) {
    groups = [:]
    let read = settings.readEach("teams", .teamID, named: "TEAM") { settings, path, _ in
      let lists = settings.readIfPresent(
        "\(path).groups", .list(of: .list(of: .clientID, count: 1...1000), count: 1...1000),
        "Which audiences of the team TEAM share consent: a list of lists. Who is in none is alone; without it all share. consent-revoked ends the tokens of its audience's group."
      )
      guard let lists else { return nil as [Set<ClientID>]? }
      var seen: Set<ClientID> = []
      for client in lists.joined() where !seen.insert(client).inserted {
        settings.refuse("\(path).groups", "\(client) stands there twice")
      }
      return lists.map { Set($0) }
    }
    for (team, lists) in read { groups[team] = lists }
  }

  /// The apps that are a team's now, as far as is known.
  func apps(of team: TeamID) -> Set<ClientID> { Set(teams.filter { $0.value == team }.keys) }

  /// The apps whose authorizations end where a person withdraws consent from one of a team's; nil is all of them.
  package func clients(of team: TeamID, sharing audience: ClientID) -> Set<ClientID>? {
    groups[team].map { groups in groups.first { $0.contains(audience) } ?? [audience] }
  }

  /// The apps whose tokens an event ends; nil is all of the team's.
  package func clients(endedBy event: AccountEvent) -> Set<ClientID>? {
    event.kind.endsConsent ? clients(of: event.team, sharing: event.audience) : nil
  }

  /// Whether an event is about some of its team's apps alone.
  package func isAboutSome(_ event: AccountEvent) -> Bool { clients(endedBy: event) != nil }

  /// The teams whose apps do not all share consent, each with the apps that are named.
  package var named: [(team: TeamID, clients: Set<ClientID>)] {
    groups.map { team, groups in (team, groups.reduce(into: []) { $0.formUnion($1) }) }
  }
}
