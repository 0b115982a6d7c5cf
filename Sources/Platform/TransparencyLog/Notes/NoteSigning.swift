/// A holder of a private key that signs notes: a key in memory, or another program that has it.
package protocol NoteSigning: Sendable {
  /// The key that verifies its signatures, of the kind `.note`.
  var key: VerifierKey { get }
  /// The Ed25519 signature of the text, 64 bytes.
  func sign(_ text: [UInt8]) async throws -> [UInt8]
}
