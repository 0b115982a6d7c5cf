import Cryptography

extension Person {
  /// Who the person is at a team that gets an app from another one: another subject, and another address at the relay.
  func known(to team: String) -> Person {
    var person = self
    person.subject = Self.exchanged(subject, for: team)
    if hidesAddress { person.address = Self.relayAddress(from: SHA256.digest(of: [UInt8]("\(team) \(address)".utf8))) }
    return person
  }

  /// The subject at such a team, of the subject that the person's name makes; and the other way round.
  static func exchanged(_ subject: String, for team: String) -> String {
    guard isSubject(subject) else { return subject }
    let mask = SHA256.digest(of: [UInt8](team.utf8)).description.utf8.prefix(32)
    let parts = subject.split(separator: ".")
    let digits = zip(parts[1].utf8, mask).map { digit, other in hexDigits[Int(value(of: digit) ^ value(of: other))] }
    return "\(parts[0]).\(String(decoding: digits, as: UTF8.self)).\(parts[2])"
  }

  private static let hexDigits = Array("0123456789abcdef".utf8)

  private static func value(of digit: UInt8) -> UInt8 { digit < 0x3a ? digit - 0x30 : digit - 0x61 + 10 }
}
