/// A person's account with the apps of one team: the thing that events happen to.
public struct Account: Sendable, Hashable {
  /// The team that the apps belong to.
  public let team: TeamID
  /// Whose account it is.
  public let subject: AppleSubject

  /// The account that the team's apps know by that subject.
  public init(team: TeamID, subject: AppleSubject) { (self.team, self.subject) = (team, subject) }

  /// The account of which records have this key; nil unless it is a Team ID and a subject with a slash between.
  package init?(key: some StringProtocol) {
    let parts = key.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let team = TeamID(String(parts[0])), let subject = AppleSubject(String(parts[1])) else {
      return nil
    }
    self.init(team: team, subject: subject)
  }

  /// `team/sub`: the key of the account's records.
  public var key: [UInt8] {
    var key: [UInt8] = []
    key.reserveCapacity(team.text.utf8.count + 1 + subject.text.utf8.count)
    key.append(contentsOf: team.text.utf8)
    key.append(UInt8(ascii: "/"))
    key.append(contentsOf: subject.text.utf8)
    return key
  }
}

extension AccountEvent {
  /// The account that it happened to.
  public var account: Account { Account(team: team, subject: subject) }
}
