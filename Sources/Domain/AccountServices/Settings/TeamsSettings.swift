package import AccountEvents
package import Configuration

/// The teams and apps that are ours: whose notifications are believed.
package struct TeamsSettings: Configurable {
  /// The team of each audience that Apple may name.
  package var teams: [ClientID: TeamID]

  /// The team of each App ID and Services ID.
  package init(teams: [ClientID: TeamID]) { self.teams = teams }

  /// Reads `teams`.
  package init(reading settings: inout Settings) {
    let entries = settings.readEach("teams", .teamID, named: "TEAM") { settings, path, _ in
      (
        path: "\(path).audiences",
        audiences: settings.read(
          "\(path).audiences", .list(of: .clientID, count: 1...1000),
          "The App IDs and Services IDs of the team TEAM, as Apple names them in aud.")
      )
    }
    teams = [:]
    for (team, value) in entries {
      for audience in value.audiences {
        if let other = teams.updateValue(team, forKey: audience) {
          let place = other == team ? "stands here twice" : "is an audience of \(other) already"
          settings.refuse(value.path, "\(audience) \(place)")
        }
      }
    }
  }
}

extension SettingType where Value == TeamID {
  /// A Team ID.
  package static var teamID: SettingType {
    SettingType(
      "Team ID", expected: "a Team ID (ten capital letters and digits, such as A1B2C3D4E5)", placeholder: .sample,
      show: \.text, parse: { TeamID($0) })
  }
}

extension SettingType where Value == ClientID {
  fileprivate static var clientID: SettingType {
    SettingType(
      "App ID or Services ID", expected: "an App ID or Services ID, such as com.example.app", placeholder: .sample,
      show: \.text, parse: { ClientID($0) })
  }
}

extension TeamID {
  fileprivate static var sample: TeamID {
    guard let team = TeamID("A1B2C3D4E5") else { preconditionFailure("the sample is well-formed") }
    return team
  }
}

extension ClientID {
  fileprivate static var sample: ClientID {
    guard let client = ClientID("com.example.app") else { preconditionFailure("the sample is well-formed") }
    return client
  }
}
