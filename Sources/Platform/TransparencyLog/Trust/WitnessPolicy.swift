/// How many of which witnesses have to have cosigned a checkpoint.
package struct WitnessPolicy: Sendable, Equatable {
  /// No cosignature is asked for, and none is looked at.
  package static let none = WitnessPolicy()

  /// The keys of the witnesses that count.
  package let witnesses: [VerifierKey]
  /// The number of them that are needed.
  package let threshold: Int

  private init() { (witnesses, threshold) = ([], 0) }

  /// At least `threshold` of these witnesses. Throws `.malformed` for a key that is not one of a witness, one that stands
  /// there twice, and a threshold that cannot be reached.
  package init(_ threshold: Int, of witnesses: [VerifierKey]) throws(LogError) {
    guard witnesses.allSatisfy({ $0.kind == .cosignature }) else {
      throw .malformed("a witness's key is of the kind of Ed25519 cosignatures (4)")
    }
    guard Set(witnesses).count == witnesses.count else { throw .malformed("a witness that is named twice") }
    guard 0...witnesses.count ~= threshold else {
      throw .malformed("\(threshold) of \(witnesses.count) witnesses cannot be had")
    }
    (self.witnesses, self.threshold) = (witnesses, threshold)
  }
}
