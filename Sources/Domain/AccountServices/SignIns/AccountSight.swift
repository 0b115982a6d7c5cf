import AccountEvents
import AccountStore

/// What of an account a caller sees: accounts of its own apps' teams, and where a team's apps do not share consent, what is of
/// the groups of its own apps.
struct AccountSight: Sendable {
  private let teams: [ClientID: TeamID]
  private let groups: ConsentGroups

  /// The team of each app, and which apps share consent.
  init(teams: [ClientID: TeamID], groups: ConsentGroups) { (self.teams, self.groups) = (teams, groups) }

  /// The team of an app.
  func team(of client: ClientID) -> TeamID? { teams[client] }

  /// The sign-ins that a caller with these apps sees; nil where it does not see the account at all.
  func signIns(of profile: AccountProfile, for clients: Set<ClientID>) -> [AccountProfile.SignIn]? {
    let team = profile.account.team
    var seen: Set<ClientID> = []
    var isOwn = false
    for client in clients where teams[client] == team {
      guard let group = groups.clients(of: team, sharing: client) else { return profile.signIns }
      seen.formUnion(group)
      isOwn = true
    }
    guard isOwn else { return nil }
    let signIns = profile.signIns.filter { seen.contains($0.client) }
    // Whose authorization has ended was there once; where all have ended, whoever has come back is of that group alone.
    let isKnown = !signIns.isEmpty || (profile.ended.map { !$0.isDisjoint(with: seen) } ?? profile.signIns.isEmpty)
    return isKnown ? signIns : nil
  }

  /// Of the apps with which somebody asks for an account's deletion the one in whose name that is done: one that the person
  /// has signed in to, where there is one. Nil where they do not see the account.
  func client(asking profile: AccountProfile, of clients: Set<ClientID>) -> ClientID? {
    guard let signIns = signIns(of: profile, for: clients) else { return nil }
    let own = clients.filter { teams[$0] == profile.account.team }
    let signedIn = own.intersection(signIns.map(\.client))
    return (signedIn.isEmpty ? own : signedIn).min { $0.text < $1.text }
  }

  /// Which of a caller's apps an event concerns, and whether it came to one of their group, so that they know whom it is
  /// about; nil where it is none of the caller's.
  ///
  /// A deletion is of the team's account as a whole, whichever app it came to. All else is of the apps that share consent.
  func concern(of event: AccountEvent, for clients: Set<ClientID>) -> (clients: Set<ClientID>, isKnown: Bool)? {
    let own = clients.filter { teams[$0] == event.team }
    let sharing = groups.clients(of: event.team, sharing: event.audience).map { own.intersection($0) } ?? own
    switch event.kind {
    case .accountDelete, .accountDeletionRequested: return own.isEmpty ? nil : (clients: own, isKnown: !sharing.isEmpty)
    case .consentRevoked, .credentialInvalid, .emailEnabled, .emailDisabled, .accountTransferred:
      return sharing.isEmpty ? nil : (clients: sharing, isKnown: true)
    }
  }

  /// Whether they see a deletion, which is of a team's account as a whole.
  func sees(_ team: TeamID, for clients: Set<ClientID>) -> Bool { clients.contains { teams[$0] == team } }
}
