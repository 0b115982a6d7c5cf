import Cryptography

/// Somebody who signed in with Apple: made up, but of the form in which Apple names people.
package struct Person: Sendable, Hashable {
  /// The value of `sub`: six digits, 32 hexadecimal digits, four digits.
  package var subject: String
  /// The address that apps have: at Apple's private relay, unless the person shares their own.
  package var address: String
  /// Whether the address is at Apple's private relay.
  package var hidesAddress = true
  /// Whether the app has the address at all: one that does not ask for it does not get it.
  package var tellsAddress = true

  /// Always the same person for the same name. A name that has the form of a subject is the subject, and so the person who
  /// has it by another name.
  package init(named name: String) {
    let digest = SHA256.digest(of: [UInt8](name.utf8))
    let bytes = digest.bytes.map(Int.init)
    let minute = bytes[19] % 24 * 100 + bytes[20] % 60  // Apple's last part reads like a time of the day
    let made =
      "00\(digits(bytes[17] % 20, 2))\(digits(bytes[18] % 100, 2)).\(digest.description.prefix(32)).\(digits(minute, 4))"
    subject = Self.isSubject(name) ? name : made
    address = Self.relayAddress(from: SHA256.digest(of: [UInt8](subject.utf8)))
  }

  /// An address at the private relay.
  static func relayAddress(from digest: SHA256Digest) -> String {
    let alphabet = Array("abcdefghijklmnopqrstuvwxyz0123456789")
    let local = digest.bytes[21..<31].map { String(alphabet[Int($0) % alphabet.count]) }.joined()
    return "\(local)@privaterelay.appleid.com"
  }

  /// Whether the text has the form of a subject.
  static func isSubject(_ name: String) -> Bool {
    let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.map(\.count) == [6, 32, 4]
      && name.utf8.allSatisfy { $0 == 0x2e || 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }
  }
}

/// A number with zeros in front.
private func digits(_ number: Int, _ count: Int) -> String {
  let text = String(number)
  return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
}
