package import AccountEvents
import Cryptography

/// A key that accounts are hashed with, apart from its store: in a file of its own, so that a backup from before its time
/// can be brought to it.
package struct HashKey: Sendable {
  /// The key's name, by which people tell keys apart. Outcomes bear a name that the keys before it are part of, too.
  package let id: HashKeyID
  let bytes: [UInt8]
  let hmac: HMAC

  /// Nil unless there are 32 bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == AES256GCM.keySize else { return nil }
    (self.bytes, hmac) = (bytes, HMAC(key: bytes))
    id = HashKeyID(digestOf: Array("siwa hash key id".utf8) + bytes)
  }

  /// Reads the key in the file at `path`: 32 bytes as base64url, in a file that nobody else can read.
  package init(file path: String) throws(KeyFileError) {
    guard let key = HashKey(try KeyFile.read(path)) else { preconditionFailure("a key in a file has 32 bytes") }
    self = key
  }
}

extension HashKeyID {
  /// The beginning of the SHA-256 of this.
  init(digestOf message: [UInt8]) {
    self.init(SHA256.digest(of: message).bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
  }
}

extension HashKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The key's id.
  package var description: String { "hashing key \(id)" }
  /// The same.
  package var debugDescription: String { description }
  /// Nothing: a dump must not show the key.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
