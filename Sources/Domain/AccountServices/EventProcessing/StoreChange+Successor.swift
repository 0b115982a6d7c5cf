import AccountEvents
import AccountStore

extension [StoreChange] {
  /// What the account is told that the person came to with an app, when that changed teams: that their consent to it is
  /// over, or that everything is. Of another app of the team before it is told nothing, as that one stays there. That the
  /// tokens of before are dead says nothing of those that the person has now.
  static func tellingSuccessor(of event: AccountEvent, _ groups: ConsentGroups) -> [StoreChange] {
    let apps = (groups.clients(of: event.team, sharing: event.audience) ?? []).union([event.audience])
    switch event.kind {
    case .consentRevoked: return [.tellSuccessor(.credentialInvalid, of: apps)]
    case .accountDeletionRequested: return [.tellSuccessor(.accountDeletionRequested, of: apps)]
    case .accountDelete: return [.tellSuccessor(.accountDeletionRequested, of: nil)]
    case .emailEnabled, .emailDisabled, .credentialInvalid, .accountTransferred: return []
    }
  }
}
