package import AccountEvents
import Cryptography
import Glibc
package import Kafka

/// What names a person: the `sub`, wherever it stands, be it in what Apple signed.
package struct PersonMarks: Sendable {
  /// The account.
  package let account: Account
  private let subject: [UInt8]

  /// The marks of an account.
  package init(of account: Account) {
    (self.account, subject) = (account, Array(account.subject.text.utf8))
  }

  /// The longest text that can hold a part of a mark and not all of it.
  var overlap: Int { subject.count - 1 }

  /// Whether a record names the person.
  package func areIn(_ record: ConsumedRecord) -> Bool {
    areIn(record.key) || areIn(record.value) || record.headers.contains { areIn(header: $0.name, $0.value) }
  }

  /// The same of a record that is on its way.
  func areIn(_ record: EventRecord) -> Bool {
    areIn(record.key) || areIn(record.value) || record.headers.contains { areIn(header: $0.name, $0.value) }
  }

  private func areIn(header name: String, _ value: [UInt8]?) -> Bool {
    if areIn(value) { return true }
    guard name == EventRecord.signatureHeader, let value else { return false }
    // What Apple signed is the second of three parts, in base64url.
    let parts = value.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count == 3 && areIn(Base64URL.decode(String(decoding: parts[1], as: UTF8.self)))
  }

  /// Whether bytes hold the `sub`.
  func areIn(_ bytes: [UInt8]?) -> Bool {
    guard let bytes, bytes.count >= subject.count else { return false }
    return unsafe bytes.withUnsafeBytes { bytes in
      unsafe subject.withUnsafeBytes { mark in
        guard var place = bytes.baseAddress, let start = mark.baseAddress else { return false }
        var left = bytes.count - mark.count + 1
        while left > 0, let found = unsafe memchr(place, CInt(mark[0]), left) {
          if unsafe memcmp(found, start, mark.count) == 0 { return true }
          left -= unsafe UnsafeRawPointer(found) - place + 1
          unsafe place = UnsafeRawPointer(found) + 1
        }
        return false
      }
    }
  }
}
