import Cryptography

/// One event that the sender sends: which, of whom, and in which trial. Its `jti` says all of it, so that a record on a
/// topic tells where it belongs.
struct SentEvent: Hashable {
  /// The trial: topics keep the events of those before it.
  let trial: UInt64
  /// The user, from 0 on.
  let user: Int
  /// Its place among the user's events, from 0 on.
  let number: Int

  /// Who it is about.
  static func name(ofUser user: Int) -> String { "person \(user)" }

  /// The 22 characters of Apple's form.
  var jti: String { Base64URL.encode(bytes(trial) + bytes(UInt32(user)) + bytes(UInt32(number))) }

  init(trial: UInt64, user: Int, number: Int) { (self.trial, self.user, self.number) = (trial, user, number) }

  /// Nil for what is no event of a trial.
  init?(jti: String) {
    guard let bytes = Base64URL.decode(jti), bytes.count == 16 else { return nil }
    func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    (trial, user, self.number) = (number(0..<8), Int(number(8..<12)), Int(number(12..<16)))
  }
}

/// The bytes of a number, the most significant first.
private func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
  stride(from: number.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
}
