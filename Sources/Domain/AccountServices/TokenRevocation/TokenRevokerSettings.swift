package import Configuration

/// What the token revoker has to know of Apple, and of the teams in whose name it asks.
package struct TokenRevokerSettings: Configurable {
  /// Where Apple revokes and validates tokens.
  package let apple: AppleTokenSettings
  /// The apps, and the keys of their teams.
  package let teams: TeamsSettings

  /// Which of them share a person's consent.
  package let groups: ConsentGroups

  /// Reads `apple` and `teams`.
  package init(reading settings: inout Settings) {
    apple = AppleTokenSettings(reading: &settings)
    teams = TeamsSettings(readingWithKeys: &settings)
    var groups = ConsentGroups(reading: &settings)
    groups.teams = teams.teams
    self.groups = groups
    for (team, clients) in groups.named {
      for client in clients where teams.teams[client] != team {
        settings.refuse("teams.\(team).groups", "\(client) is no audience of \(team)")
      }
    }
  }
}
