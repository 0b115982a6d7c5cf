package import TransparencyLog

/// What signs a log's checkpoints: its key, and during a rotation the one before it, too.
package struct CheckpointSigners: Sendable {
  private let signers: [any NoteSigning]

  /// Signers in the order of their lines; at least one.
  package init(_ signers: [any NoteSigning]) {
    precondition(!signers.isEmpty, "nobody signs")
    self.signers = signers
  }

  /// The keys that verify what is signed.
  var keys: [VerifierKey] { signers.map(\.key) }

  /// The checkpoint with a signature by each, every one of which is verified. Throws where one fails: a checkpoint that
  /// lacks a key's signature could not be verified by who knows only that key.
  package func sign(_ checkpoint: Checkpoint) async throws -> SignedNote {
    var signatures: [NoteSignature] = []
    for signer in signers { signatures += try await SignedNote.sign(checkpoint.text, with: signer).signatures }
    return try SignedNote(text: checkpoint.text, signatures)
  }
}
