package import Cryptography

/// The key that all other keys of a store are wrapped with. It lies in a file, apart from the store and its backups:
/// without it nobody reads them.
package struct MasterKey: Sendable {
  /// Tells this key from others, and nothing about it: 16 hexadecimal digits.
  package let id: String
  private let cipher: AES256GCM
  /// What opens what the keys before this one have wrapped, by their ids.
  private var former: [String: AES256GCM] = [:]

  /// Nil unless there are 32 bytes.
  package init?(_ bytes: [UInt8]) {
    do throws(CryptographyError) {
      cipher = try AES256GCM(key: bytes)
    } catch {
      return nil
    }
    id = String(SHA256.digest(of: Array("siwa master key id".utf8) + bytes).description.prefix(16))
  }

  /// Reads the key in the file at `path`: 32 bytes as base64url, in a file that nobody else can read.
  package init(file path: String) throws(KeyFileError) {
    guard let key = MasterKey(try KeyFile.read(path)) else { preconditionFailure("a key in a file has 32 bytes") }
    self = key
  }

  /// This key, which also opens what `former` has wrapped, until all of that is wrapped anew.
  package func replacing(_ former: MasterKey) -> MasterKey {
    var key = self
    key.former[former.id] = former.cipher
    return key
  }

  /// The text of a new key, for a file.
  package static func newText() throws(CryptographyError) -> String {
    Base64URL.encode(try SecureRandom.bytes(AES256GCM.keySize)) + "\n"
  }

  /// Whether somebody took the same bytes for a hashing key.
  func isSame(as key: HashKey) -> Bool { MasterKey(key.bytes).map { $0.id == id || former[$0.id] != nil } ?? false }

  /// The key sealed for that place.
  func wrap(_ key: [UInt8], for place: SealedPlace) throws(AccountStoreError) -> [UInt8] {
    try cipher.seal(key, for: place)
  }

  /// The key that was wrapped for that place, by the master key of that id: this one or a former one.
  func unwrap(_ wrapped: [UInt8], from place: SealedPlace, ofKey id: String) throws(AccountStoreError) -> [UInt8] {
    guard let cipher = id == self.id ? cipher : former[id] else {
      throw AccountStoreError(
        .wrongMasterKey, "\(place.name) is wrapped with master key \(id), and the one that is configured is \(self.id)")
    }
    return try cipher.open(wrapped, from: place)
  }

  /// The same, wrapped with this key, for that place or another one.
  func rewrap(
    _ wrapped: [UInt8], at place: SealedPlace, to other: SealedPlace? = nil, ofKey id: String
  ) throws(AccountStoreError) -> [UInt8] {
    try wrap(try unwrap(wrapped, from: place, ofKey: id), for: other ?? place)
  }
}

extension MasterKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The key's id.
  package var description: String { "master key \(id)" }
  /// The same.
  package var debugDescription: String { description }
  /// Nothing: a dump must not show the key.
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension AES256GCM {
  /// Seals a value for its place.
  func seal(_ value: [UInt8], for place: SealedPlace) throws(AccountStoreError) -> [UInt8] {
    do throws(CryptographyError) {
      return try seal(value, authenticating: place.bytes)
    } catch {
      throw AccountStoreError(.failed, "\(place.name): \(error)")
    }
  }

  /// Opens a value of that place.
  func open(_ sealed: [UInt8], from place: SealedPlace) throws(AccountStoreError) -> [UInt8] {
    do throws(CryptographyError) {
      return try open(sealed, authenticating: place.bytes)
    } catch {
      throw AccountStoreError(.sealBroken, "\(place.name): the seal is broken")
    }
  }
}
