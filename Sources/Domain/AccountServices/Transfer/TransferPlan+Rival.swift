import AccountEvents
package import AccountStore

extension TransferPlan {
  /// Whether the other one is a receiving plan, too, of the same app from the same team: what both led to could be two keys
  /// for one account. One that is being removed leads to nothing any more.
  package func isRival(of other: TransferPlan) -> Bool {
    name != other.name && side == .receiving && other.side == .receiving && client == other.client
      && (team, otherTeam) == (other.team, other.otherTeam) && !isBeingRemoved
  }
}
