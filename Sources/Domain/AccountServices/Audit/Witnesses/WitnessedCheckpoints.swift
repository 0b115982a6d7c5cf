package import TransparencyLog

/// The checkpoints of late, with the cosignatures that they have so far.
///
/// A value: who announces a checkpoint or brings a cosignature is told what is to be published.
package struct WitnessedCheckpoints: Sendable {
  /// What follows from a cosignature.
  package struct Step: Sendable, Equatable {
    /// The note is the newest checkpoint's: readers are to see it with the cosignature.
    package var newest: SignedNote?
    /// As many have cosigned the note as have to, and none before that was larger.
    package var witnessed: SignedNote?

    /// What follows; nothing where neither is given.
    package init(newest: SignedNote? = nil, witnessed: SignedNote? = nil) {
      (self.newest, self.witnessed) = (newest, witnessed)
    }
  }

  /// A checkpoint of late.
  private struct Announced: Sendable {
    let number: UInt64
    let head: TreeHead
    var note: SignedNote

    /// How early witnesses take it.
    var rank: Int { number.trailingZeroBitCount }
  }

  /// How many checkpoints are remembered: a witness may take so many intervals for its answer.
  private static let memory = 256

  private let witnesses: [VerifierKey]
  private let quorum: Int
  private var notes: [Announced] = []
  private var count: UInt64 = 0
  private var witnessedSize: UInt64?

  /// Nothing announced yet. `witnessedSize` is that of the last checkpoint that so many of them have cosigned.
  package init(_ witnesses: [VerifierKey], quorum: Int, witnessedSize: UInt64?) {
    (self.witnesses, self.quorum, self.witnessedSize) = (witnesses, quorum, witnessedSize)
  }

  /// The checkpoint of at least `size` entries that a witness is to cosign next; nil where there is none yet.
  ///
  /// If each took the newest one, witnesses that are slower than checkpoints come would cosign different ones, and hardly
  /// any would ever have all cosignatures. So each takes the one whose number can be halved most often: there they meet,
  /// whatever their paces, and come to the newest one where no others follow it. One alone has nobody to meet, and who
  /// `isRefusing` is given the newest one: what is wrong with another may be that a key signed it which was replaced since.
  package func next(from size: UInt64, isRefusing: Bool = false) -> (head: TreeHead, note: SignedNote)? {
    let open = notes.filter { $0.head.size >= size }
    let next = witnesses.count > 1 && !isRefusing ? open.max { ($0.rank, $0.number) < ($1.rank, $1.number) } : open.last
    return next.map { ($0.head, $0.note) }
  }

  /// A checkpoint was published, which is larger than those before it, or has more cosignatures than it had.
  package mutating func announce(_ note: SignedNote, _ head: TreeHead) {
    notes.removeAll { $0.head.size >= head.size }
    notes.append(Announced(number: count, head: head, note: note))
    count += 1
    if notes.count > Self.memory { notes.removeFirst() }
  }

  /// A witness has cosigned the checkpoint of that size: `answer` is its note with the cosignature.
  package mutating func add(_ answer: SignedNote, of size: UInt64) throws(LogError) -> Step {
    guard let place = notes.firstIndex(where: { $0.head.size == size && $0.note.text == answer.text }) else {
      return Step()
    }
    var signatures = notes[place].note.signatures
    for signature in answer.signatures {
      // A newer cosignature of the same key takes the place of the older one.
      signatures.removeAll { $0.name == signature.name && $0.keyID == signature.keyID }
      signatures.append(signature)
    }
    let note = try SignedNote(text: answer.text, signatures)
    notes[place].note = note
    var step = Step(newest: place == notes.count - 1 ? note : nil, witnessed: nil)
    let cosigned = witnesses.count { key in
      note.signatures.contains { $0.name == key.name && $0.keyID == key.id }
    }
    if cosigned >= quorum, witnessedSize.map({ $0 <= size }) ?? true { (step.witnessed, witnessedSize) = (note, size) }
    return step
  }
}
