import AccountEvents
import AppleSimulator
import EventLoop

extension RelayAddress {
  /// Somebody's address.
  static func sample(_ person: Person) -> RelayAddress {
    guard let address = RelayAddress(person.address) else { preconditionFailure("a made-up address") }
    return address
  }
}

extension AccountEvent {
  /// An event of somebody's, `number` milliseconds after the others.
  static func sample(
    _ id: String, _ kind: Kind, of person: Person, team: String = AppleSide.team, at number: Int = 0
  ) -> AccountEvent {
    guard let id = EventID(id), let team = TeamID(team), let audience = ClientID(AppleSide.app),
      let subject = AppleSubject(person.subject)
    else { preconditionFailure("made-up names") }
    return AccountEvent(
      id: id, team: team, audience: audience, subject: subject, kind: kind,
      occurredAt: .now - .seconds(60) + .milliseconds(number), issuedAt: .now)
  }
}
