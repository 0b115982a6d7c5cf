package import TransparencyLog

/// The checkpoints of late, with the cosignatures that they have so far.
///
/// A value: who announces a checkpoint or brings a cosignature is told what is to be published.
package struct WitnessedCheckpoints: Sendable {
  /// What follows from a cosignature.
  package struct Step: Sendable, Equatable {
    /// The note is the newest checkpoint's: readers are to see it with the cosignature.
    package var newest: SignedNote?
    /// The note has all cosignatures, and is larger than the last that had them.
    package var witnessed: SignedNote?
  }

  /// How many checkpoints are remembered: a witness may take so many intervals for its answer.
  private static let memory = 64

  private let witnesses: [VerifierKey]
  private var notes: [(size: UInt64, note: SignedNote)] = []
  private var witnessedSize: UInt64?

  /// Nothing announced yet. `witnessedSize` is that of the last checkpoint that all of them have cosigned.
  package init(_ witnesses: [VerifierKey], witnessedSize: UInt64?) {
    (self.witnesses, self.witnessedSize) = (witnesses, witnessedSize)
  }

  /// The newest checkpoint.
  package var newest: (size: UInt64, note: SignedNote)? { notes.last }

  /// A checkpoint was published, which is larger than those before it, or has more cosignatures than it had.
  package mutating func announce(_ note: SignedNote, of size: UInt64) {
    notes.removeAll { $0.size >= size }
    notes.append((size, note))
    if notes.count > Self.memory { notes.removeFirst() }
  }

  /// A witness has cosigned the checkpoint of that size: `answer` is its note with the cosignature.
  package mutating func add(_ answer: SignedNote, of size: UInt64) throws(LogError) -> Step {
    guard let place = notes.firstIndex(where: { $0.size == size && $0.note.text == answer.text }) else { return Step() }
    var signatures = notes[place].note.signatures
    for signature in answer.signatures {
      // A newer cosignature of the same key takes the place of the older one.
      signatures.removeAll { $0.name == signature.name && $0.keyID == signature.keyID }
      signatures.append(signature)
    }
    let note = try SignedNote(text: answer.text, signatures)
    notes[place].note = note
    var step = Step(newest: place == notes.count - 1 ? note : nil, witnessed: nil)
    let isWhole = witnesses.allSatisfy { key in
      note.signatures.contains { $0.name == key.name && $0.keyID == key.id }
    }
    if isWhole, witnessedSize.map({ $0 <= size }) ?? true { (step.witnessed, witnessedSize) = (note, size) }
    return step
  }
}
