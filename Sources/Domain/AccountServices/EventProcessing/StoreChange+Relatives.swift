import AccountEvents
import AccountStore

extension [StoreChange] {
  /// What an event leads to for the accounts that the person had before an app changed teams, and has since. What was said
  /// of one of them already is said on in the same direction alone.
  static func tellingRelatives(of event: AccountEvent, _ groups: ConsentGroups) -> [StoreChange] {
    var changes: [StoreChange] = []
    if !RelativeEvent.isTold(event.id, .predecessor) { changes += tellingSuccessor(of: event, groups) }
    if !RelativeEvent.isTold(event.id, .successor) { changes += tellingPredecessor(of: event, groups) }
    return changes
  }

  /// What the account is told that the person came to with an app, when that changed teams: that their consent to it is
  /// over, or that everything is. Of another app of the team before it is told nothing, as that one stays there. That the
  /// tokens of before are dead says nothing of those that the person has now, unless it follows from a consent that was
  /// withdrawn even before: that goes on to where the app is now.
  private static func tellingSuccessor(of event: AccountEvent, _ groups: ConsentGroups) -> [StoreChange] {
    let apps = (groups.clients(of: event.team, sharing: event.audience) ?? []).union([event.audience])
    switch event.kind {
    case .consentRevoked: return [.tellSuccessor(.credentialInvalid, of: apps)]
    case .accountDeletionRequested: return [.tellSuccessor(.accountDeletionRequested, of: apps)]
    case .accountDelete: return [.tellSuccessor(.accountDeletionRequested, of: nil)]
    case .credentialInvalid where RelativeEvent.isTold(event.id, .successor):
      return [.tellSuccessor(.credentialInvalid, of: apps)]
    case .emailEnabled, .emailDisabled, .credentialInvalid, .accountTransferred: return []
    }
  }

  /// What the account is told that the person had at the team before. A deletion is of all of the account that they have
  /// now, whichever app has asked for it; the account of before may go on with apps that have stayed, unless the Apple
  /// Account itself is gone. The tokens of apps that are the team's now are over there, too. An app that has gone on to a third
  /// team has taken the person along: what is left at the second says nothing of the first, unless the third has said it.
  private static func tellingPredecessor(of event: AccountEvent, _ groups: ConsentGroups) -> [StoreChange] {
    let moved = groups.apps(of: event.team)
    let isAnyApp = moved.isEmpty || RelativeEvent.isTold(event.id, .predecessor)
    let here = isAnyApp ? nil : moved.union([event.audience])
    switch event.kind {
    case .consentRevoked, .credentialInvalid:
      let apps = groups.clients(endedBy: event)
      return [
        .tellPredecessor(.credentialInvalid, of: apps ?? here, ending: apps.map { moved.intersection($0) } ?? moved)
      ]
    case .accountDeletionRequested: return [.tellPredecessor(.accountDeletionRequested, of: here, ending: moved)]
    case .accountDelete: return [.tellPredecessor(.accountDeletionRequested, of: nil, ending: nil)]
    case .emailEnabled, .emailDisabled, .accountTransferred: return []
    }
  }
}
