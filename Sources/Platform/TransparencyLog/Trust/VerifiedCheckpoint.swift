/// A checkpoint that the log has signed, and as many witnesses as asked for: `LogTrust` alone makes one.
package struct VerifiedCheckpoint: Sendable {
  /// A witness's statement that it saw this tree, and none that contradicts it.
  package struct Cosignature: Sendable, Equatable {
    /// The witness's key.
    package let witness: VerifierKey
    /// The time of the cosignature, in seconds since the Unix epoch.
    package let time: UInt64
  }

  /// The signed checkpoint.
  package let checkpoint: Checkpoint
  /// The note as it was read, with signatures by unknown keys too.
  package let note: SignedNote
  /// The log's key that signed it.
  package let key: VerifierKey
  /// The cosignatures by witnesses of the policy, which verify.
  package let cosignatures: [Cosignature]
  /// How many entries the log's newest checkpoint covers, where that is not cosigned yet and this one stands in for it:
  /// `LogPath.witnessed`.
  package internal(set) var uncosignedSize: UInt64?

  /// Until when whoever has cosigned it saw nothing newer, in seconds since the Unix epoch: the oldest of the cosignatures'
  /// times. Nil where there are none.
  package var cosignedAt: UInt64? { cosignatures.map(\.time).min() }

  init(_ checkpoint: Checkpoint, _ note: SignedNote, by key: VerifierKey, _ cosignatures: [Cosignature]) {
    (self.checkpoint, self.note, self.key, self.cosignatures) = (checkpoint, note, key, cosignatures)
  }
}
