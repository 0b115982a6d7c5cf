package import AccountEvents

/// One side of the transfer of an app's users from one team to another: what an operator has begun with
/// `siwa migrate prepare`, and goes on with until the 60 days are over.
package struct TransferPlan: Sendable, Hashable {
  /// Which side of the transfer a team is on.
  package enum Side: String, Sendable, Hashable, CaseIterable {
    /// The team that has had the app: it asks for transfer identifiers.
    case sending
    /// The team that gets the app: it asks who the identifiers stand for.
    case receiving
  }

  /// How long both teams can ask Apple, from the acceptance of the transfer on.
  package static let window = Duration.seconds(60 * 86_400)

  /// The plan's name, which the operator gives: 1 to 40 small letters, digits and hyphens.
  package let name: String
  /// Which side we are.
  package let side: Side
  /// Our team.
  package let team: TeamID
  /// The other one.
  package let otherTeam: TeamID
  /// The app that is transferred: Apple is asked in its name.
  package let client: ClientID
  /// When the plan was made.
  package let createdAt: Timestamp
  /// When the transfer was accepted; nil while it was not, or nobody has said so.
  package var acceptedAt: Timestamp?
  /// When one user was tried, and all was in order; nil before.
  package var triedAt: Timestamp?

  /// Whether its removal was begun and has not come to its end: all that is left to do is to remove it.
  package internal(set) var isBeingRemoved = false

  /// A plan from its parts; nil where the name is none, or both teams are one.
  package init?(
    _ name: String, _ side: Side, team: TeamID, otherTeam: TeamID, client: ClientID, createdAt: Timestamp,
    acceptedAt: Timestamp? = nil, triedAt: Timestamp? = nil
  ) {
    guard Self.isName(name), team != otherTeam else { return nil }
    (self.name, self.side, self.team, self.otherTeam, self.client) = (name, side, team, otherTeam, client)
    (self.createdAt, self.acceptedAt, self.triedAt) = (createdAt, acceptedAt, triedAt)
  }

  /// Whether a plan may have that name: 1 to 40 small letters, digits and hyphens.
  package static func isName(_ text: String) -> Bool {
    1...40 ~= text.utf8.count
      && text.utf8.allSatisfy { 0x61...0x7a ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x2d }
  }

  /// When Apple's endpoints close for both teams; nil while the acceptance is not known.
  package var closesAt: Timestamp? { acceptedAt.map { $0 + Self.window } }
}
