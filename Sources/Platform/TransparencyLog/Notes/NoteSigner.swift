import Cryptography

/// A private key for notes, in the text form of Go's `golang.org/x/mod/sumdb/note`.
package struct NoteSigner: NoteSigning {
  /// The key that verifies its signatures.
  package let key: VerifierKey
  private let privateKey: Ed25519PrivateKey

  /// A new key of that name, with the text that it is kept as: a secret.
  package static func generate(name: String) throws -> (signer: NoteSigner, text: String) {
    let seed = try SecureRandom.bytes(Ed25519PrivateKey.seedSize)
    let signer = try NoteSigner(name: name, seed: seed)
    let id = VerifierKey.hexadecimal(signer.key.id)
    return (signer, "\(prefix)\(name)+\(id)+\(Base64.encode([VerifierKey.Kind.note.rawValue] + seed))")
  }

  /// The key of `PRIVATE+KEY+name+id+key`.
  package init(_ text: String) throws(LogError) {
    let parts = text.dropFirst(Self.prefix.count).split(
      separator: "+", maxSplits: 2, omittingEmptySubsequences: false
    ).map(String.init)
    guard text.hasPrefix(Self.prefix), parts.count == 3, let bytes = Base64.decode(parts[2]),
      bytes.first == VerifierKey.Kind.note.rawValue
    else { throw .malformed("a private key for notes is \(Self.prefix), a name, an ID and an Ed25519 key") }
    try self.init(name: parts[0], seed: Array(bytes.dropFirst()))
    guard parts[1] == VerifierKey.hexadecimal(key.id) else {
      throw .malformed("a private key whose ID is not that of its name and key")
    }
  }

  private init(name: String, seed: [UInt8]) throws(LogError) {
    do throws(CryptographyError) {
      privateKey = try Ed25519PrivateKey(seed: seed)
    } catch {
      throw .malformed("no Ed25519 private key")
    }
    key = try VerifierKey(name: name, kind: .note, publicKey: privateKey.publicKey.bytes)
  }

  /// The Ed25519 signature of the text.
  package func sign(_ text: [UInt8]) async throws -> [UInt8] { try privateKey.sign(text) }

  private static let prefix = "PRIVATE+KEY+"
}

extension NoteSigner: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The public key; never the private one.
  package var description: String { key.text }
  /// The same.
  package var debugDescription: String { description }
  /// Nothing: a dump must not show the key.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
