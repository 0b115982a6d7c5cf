import Cryptography

/// The private key of a witness, which cosigns checkpoints (tlog-cosignature). Checking consistency is up to the caller.
package struct Cosigner: Sendable {
  /// The key that verifies its cosignatures.
  package let key: VerifierKey
  private let privateKey: Ed25519PrivateKey

  /// A witness's key from a seed of 32 secret random bytes.
  package init(name: String, seed: [UInt8]) throws {
    privateKey = try Ed25519PrivateKey(seed: seed)
    key = try VerifierKey(name: name, kind: .cosignature, publicKey: privateKey.publicKey.bytes)
  }

  /// The cosignature of a checkpoint's text, at a time in seconds since the Unix epoch.
  package func cosign(_ text: [UInt8], at time: UInt64) throws -> NoteSignature {
    let bytes = (0..<8).map { UInt8(truncatingIfNeeded: time >> (56 - 8 * $0)) }
    return NoteSignature(by: key, bytes + (try privateKey.sign(VerifierKey.message(cosigning: text, at: time))))
  }
}
