package import AccountEvents
package import AppleID
package import Configuration
import Cryptography

/// The teams and apps that are ours: whose notifications are believed, and in whose name Apple is asked.
package struct TeamsSettings: Configurable {
  /// The team of each audience that Apple may name.
  package var teams: [ClientID: TeamID]
  /// The key of each team; none in a program that asks Apple for nothing.
  package var keys: [TeamID: TeamKey]
  /// The key of a team that signs where Apple refuses the other one, as while one replaces the other.
  package var secondKeys: [TeamID: TeamKey]

  /// The team of each App ID and Services ID, and the keys of each team.
  package init(teams: [ClientID: TeamID], keys: [TeamID: TeamKey] = [:], secondKeys: [TeamID: TeamKey] = [:]) {
    (self.teams, self.keys, self.secondKeys) = (teams, keys, secondKeys)
  }

  /// Reads `teams` without their keys, for programs that only listen: they need not even be able to read the files.
  package init(reading settings: inout Settings) { self.init(reading: &settings) { _, _, _ in (nil, nil) } }

  /// Reads `teams` with their keys, for programs that ask Apple for something.
  package init(readingWithKeys settings: inout Settings) {
    self.init(reading: &settings) { settings, path, team in
      let first = TeamKey(of: team, reading: &settings, at: path)
      let second = TeamKey(secondOf: team, reading: &settings, at: path)
      if let first, let second, first.id == second.id {
        settings.refuse("\(path).key-id-second", "is the ID of the first key: a second one has an ID of its own")
      } else if let first, let second, first.isSameKey(as: second) {
        settings.refuse("\(path).private-key-second", "holds the first key: a second one has a file of its own")
      }
      return (first, second)
    }
  }

  private init(
    reading settings: inout Settings,
    keys read: (inout Settings, _ path: String, _ team: TeamID) -> (first: TeamKey?, second: TeamKey?)
  ) {
    let entries = settings.readEach("teams", .teamID, named: "TEAM") { settings, path, team in
      (
        path: "\(path).audiences",
        audiences: settings.read(
          "\(path).audiences", .list(of: .clientID, count: 1...1000),
          "The App IDs and Services IDs of the team TEAM, as Apple names them in aud."),
        keys: read(&settings, path, team)
      )
    }
    (teams, keys, secondKeys) = ([:], [:], [:])
    for (team, value) in entries {
      (keys[team], secondKeys[team]) = (value.keys.first, value.keys.second)
      for audience in value.audiences {
        if let other = teams.updateValue(team, forKey: audience) {
          let place = other == team ? "stands here twice" : "is an audience of \(other) already"
          settings.refuse(value.path, "\(audience) \(place)")
        }
      }
    }
  }
}

extension TeamKey {
  /// The key of a team, with its name; nil where a fault has been told.
  fileprivate init?(of team: TeamID, reading settings: inout Settings, at path: String) {
    let id = settings.read(
      "\(path).key-id", .keyID, "The ID of the team's key for Sign in with Apple, as Apple shows it.")
    let pem = settings.read(
      "\(path).private-key", .secret, "The team's key for Sign in with Apple: the .p8 file as Apple gave it.")
    self.init(team, id, pem, from: "\(path).private-key", &settings)
  }

  /// The key beside it; nil where there is none, or a fault has been told.
  fileprivate init?(secondOf team: TeamID, reading settings: inout Settings, at path: String) {
    let id = settings.readIfPresent(
      "\(path).key-id-second", .keyID,
      "The ID of a second key of the team's, with which Apple is asked where it refuses the first: for a rotation.")
    let pem = settings.readIfPresent(
      "\(path).private-key-second", .secret, "The second key: the .p8 file as Apple gave it.")
    switch (id, pem) {
    case (nil, nil): return nil
    case (let id?, let pem?): self.init(team, id, pem, from: "\(path).private-key-second", &settings)
    case (nil, _):
      if !settings.isFaulty("\(path).key-id-second") {
        settings.refuse("\(path).private-key-second", "goes with key-id-second, which is missing")
      }
      return nil
    case (_, nil):
      if !settings.isFaulty("\(path).private-key-second") {
        settings.refuse("\(path).key-id-second", "goes with private-key-second, which is missing")
      }
      return nil
    }
  }

  /// Whether both sign alike; not where that cannot be told.
  fileprivate func isSameKey(as other: TeamKey) -> Bool {
    do {
      let (own, others) = (try privateKey.publicKey, try other.privateKey.publicKey)
      return own.x == others.x && own.y == others.y
    } catch {
      return false
    }
  }

  private init?(_ team: TeamID, _ id: KeyID, _ pem: Secret, from path: String, _ settings: inout Settings) {
    do {
      self.init(team: team, id: id, privateKey: try P256PrivateKey(pem: pem.revealed))
    } catch {
      settings.refuse(path, "expected a private key as Apple gives it (.p8: PEM, P-256, not encrypted): \(error)")
      return nil
    }
  }
}

extension SettingType where Value == KeyID {
  fileprivate static var keyID: SettingType {
    SettingType(
      "key ID", expected: "a key ID (ten capital letters and digits, such as ABC123DEFG)", standIn: .sample,
      show: \.text, parse: { text in TeamID(text) == nil ? nil : KeyID(text) })
  }
}

extension KeyID {
  fileprivate static var sample: KeyID {
    guard let id = KeyID("ABC123DEFG") else { preconditionFailure("the sample is well-formed") }
    return id
  }
}

extension SettingType where Value == TeamID {
  /// A Team ID.
  package static var teamID: SettingType {
    SettingType(
      "Team ID", expected: "a Team ID (ten capital letters and digits, such as A1B2C3D4E5)", standIn: .sample,
      show: \.text, parse: { TeamID($0) })
  }
}

extension SettingType where Value == ClientID {
  /// An App ID or Services ID.
  static var clientID: SettingType {
    SettingType(
      "App ID or Services ID", expected: "an App ID or Services ID, such as com.example.app", standIn: .sample,
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
