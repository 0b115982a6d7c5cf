import Cryptography

/// A key that verifies signatures on notes, under a name: what C2SP calls a vkey (signed-note).
///
/// The name and the ID, a short hash of name and key, say in a signature line which key it is from; the key alone says
/// whether it is.
package struct VerifierKey: Sendable, Hashable, CustomStringConvertible {
  /// The signature type; the raw value is signed-note's identifier byte.
  package enum Kind: UInt8, Sendable {
    /// The note's text, by Ed25519: a log's own key.
    case note = 0x01
    /// A checkpoint and the time at which a witness has seen it, by Ed25519 (tlog-cosignature).
    case cosignature = 0x04
  }

  /// The key's name, such as `example.com/log`.
  package let name: String
  /// The signature type.
  package let kind: Kind
  /// The first four bytes of a hash over name, kind and key.
  package let id: UInt32
  private let key: Ed25519PublicKey

  /// A key of that name. Throws `.malformed` for a name that no key can have, or a public key that has not 32 bytes.
  package init(name: String, kind: Kind, publicKey: [UInt8]) throws(LogError) {
    guard KeyName.isValid(name) else { throw .malformed("a name that no key can have") }
    do throws(CryptographyError) {
      key = try Ed25519PublicKey(bytes: publicKey)
    } catch {
      throw .malformed("no Ed25519 public key")
    }
    (self.name, self.kind) = (name, kind)
    let digest = SHA256.digest(of: Array("\(name)\n".utf8) + [kind.rawValue] + publicKey)
    id = digest.bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// A key from a vkey such as `example.com/log+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k`.
  package init(_ text: String) throws(LogError) {
    // Base64 may have plus signs of its own.
    let parts = text.split(separator: "+", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, let bytes = Base64.decode(parts[2]), let kind = bytes.first else {
      throw .malformed("a verifier key is a name, an ID and a key, with plus signs between them")
    }
    guard let kind = Kind(rawValue: kind) else {
      throw .malformed("a verifier key of a kind other than Ed25519 (1) and Ed25519 cosignature (4)")
    }
    try self.init(name: parts[0], kind: kind, publicKey: Array(bytes.dropFirst()))
    guard parts[1] == Self.hexadecimal(id) else {
      throw .malformed("a verifier key whose ID is not that of its name and key")
    }
  }

  /// The vkey.
  package var text: String {
    "\(name)+\(Self.hexadecimal(id))+\(Base64.encode([kind.rawValue] + key.bytes))"
  }

  /// The vkey.
  package var description: String { text }

  /// Whether `signature` is this key's signature of a note with that text.
  package func verifies(_ signature: [UInt8], of text: [UInt8]) -> Bool {
    switch kind {
    case .note: return key.verifies(signature, of: text)
    case .cosignature:
      guard let time = Self.time(of: signature) else { return false }
      return key.verifies(Array(signature.dropFirst(8)), of: Self.message(cosigning: text, at: time))
    }
  }

  /// Whether a signature line is under this key's name and ID; whether it is by the key, `verifies` says.
  func isNamed(by signature: NoteSignature) -> Bool {
    signature.keyID == id && signature.name.utf8.elementsEqual(name.utf8)
  }

  /// The time of a cosignature, in seconds since the Unix epoch; nil where it has not that form.
  static func time(of cosignature: [UInt8]) -> UInt64? {
    guard cosignature.count == 8 + Ed25519PublicKey.signatureSize else { return nil }
    let time = cosignature.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return time <= UInt64(Int64.max) ? time : nil
  }

  /// The message that a witness signs.
  static func message(cosigning text: [UInt8], at time: UInt64) -> [UInt8] {
    Array("cosignature/v1\ntime \(time)\n".utf8) + text
  }

  static func hexadecimal(_ id: UInt32) -> String {
    let digits = String(id, radix: 16)
    return String(repeating: "0", count: 8 - digits.utf8.count) + digits
  }
}
