package import AccountEvents
import Cryptography

/// The name of an account outside of the store: for the applications that a person signs in to.
///
/// It is the account's hash under the store's first hashing key: nobody gets from it to the person, it is the same for as long
/// as there is the store, and where the hashing key is replaced it stays what it was. After an erasure the same person has the
/// same id again.
package struct AccountID: Sendable, Hashable, CustomStringConvertible {
  /// The 32 bytes.
  package let bytes: [UInt8]

  /// Nil unless there are 32 bytes.
  package init?(bytes: [UInt8]) {
    guard bytes.count == SHA256Digest.byteCount else { return nil }
    self.bytes = bytes
  }

  /// How many characters a description has.
  package static let length = 43

  /// Nil unless `text` is the description of an id.
  package init?(_ text: String) { self.init(text: unsafe text.utf8.span.bytes) }

  /// The same by the bytes of a text.
  package init?(text: RawSpan) {
    guard text.byteCount == Self.length, let bytes = Base64URL.decode(text) else { return nil }
    self.init(bytes: bytes)
  }

  /// The bytes as 43 characters of base64url.
  package var description: String { Base64URL.encode(bytes) }

  /// Appends the description.
  package func append(to text: inout [UInt8]) { unsafe Base64URL.append(bytes.span.bytes, to: &text) }
}

extension AccountStore {
  /// The account's id.
  package nonisolated func id(of account: Account) -> AccountID {
    guard let first = hashes(of: account).first, let id = AccountID(bytes: first.bytes) else {
      preconditionFailure("a store has a first hashing key")
    }
    return id
  }
}

extension HashChain {
  /// The hash under the newest key.
  func newest(of id: AccountID) -> AccountHash { newest(of: id.bytes, generation: 1) }
}
