package import AccountEvents
package import AccountStore
import AppleID
package import Configuration

/// What moving users between teams has to know: of the teams in whose name Apple is asked, of Apple, and of the store.
package struct MigrationConfiguration: Configurable {
  /// The apps, and the keys of their teams.
  package let teams: TeamsSettings
  /// Where Apple is asked.
  package let apple: AppleMigrationSettings
  /// Where the plans are.
  package let store: StoreSettings

  /// Everything said, nothing assumed.
  package init(teams: TeamsSettings, apple: AppleMigrationSettings, store: StoreSettings) {
    (self.teams, self.apple, self.store) = (teams, apple, store)
  }

  /// Reads `teams`, `apple` and `store`.
  package init(reading settings: inout Settings) {
    teams = TeamsSettings(readingWithKeys: &settings)
    apple = AppleMigrationSettings(reading: &settings)
    store = StoreSettings(reading: &settings)
  }

  /// The keys of a team, for the words of an error.
  package func keys(of team: TeamID) -> [KeyID] { [teams.keys[team], teams.secondKeys[team]].compactMap { $0?.id } }
}
