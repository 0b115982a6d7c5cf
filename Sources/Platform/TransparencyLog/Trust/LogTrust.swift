/// A verifier's trust in a log, configured out of band: its name, its first key and a policy for witnesses, with the keys
/// that followed the first one.
package struct LogTrust: Sendable {
  /// The name of the log.
  package let origin: String
  /// The log's first key.
  package let key: VerifierKey
  /// The cosignatures that a checkpoint needs.
  package let policy: WitnessPolicy
  /// The rotations from the first key on.
  package let history: KeyHistory

  /// The key that the log signs with now.
  package var newestKey: VerifierKey { history.rotations.last?.key ?? key }

  /// Trust in a log by its name and its first key. Throws `.malformed` for a key that is not one of a log.
  package init(origin: String, key: VerifierKey, policy: WitnessPolicy) throws(LogError) {
    guard key.kind == .note else { throw .malformed("a log's key is of the kind of Ed25519 signatures (1)") }
    (self.origin, self.key, self.policy, history) = (origin, key, policy, KeyHistory())
  }

  private init(_ trust: LogTrust, _ history: KeyHistory) {
    (origin, key, policy, self.history) = (trust.origin, trust.key, trust.policy, history)
  }

  /// The same trust in the log, and in the keys that its file `keys` names.
  ///
  /// Throws `.conflict` for a file that does not begin with the rotations that are known already: a key that was replaced
  /// is not trusted again, and has no second successor.
  package func following(_ keysFile: [UInt8]) throws(LogError) -> LogTrust {
    let history = try KeyHistory(keysFile, of: origin, from: key)
    guard history.continues(self.history) else {
      throw LogError(.conflict, LogPath.keys, "the history of keys does not continue the one that is known")
    }
    return LogTrust(self, history)
  }

  /// The checkpoint in a note, verified. Throws `.malformed`, `.wrongOrigin`, `.unsigned`, `.badSignature` or
  /// `.notCosigned`, and `.conflict` for another tree than the one of that size at which a key was replaced.
  ///
  /// A tree that is smaller than that one can be of anybody who has the replaced key since (`replacement`).
  package func verify(_ note: SignedNote) throws(LogError) -> VerifiedCheckpoint {
    let checkpoint = try Checkpoint(note.text)
    guard checkpoint.isOf(origin) else {
      throw LogError(.wrongOrigin, "", "the checkpoint is not one of \(origin)")
    }
    let signers = try note.verified(by: keys(for: checkpoint.size))
    guard history.rotations.allSatisfy({ $0.head.size != checkpoint.size || $0.head == checkpoint.head }) else {
      throw LogError(.conflict, "", "another root than that of the same size at which a key of the log was replaced")
    }
    let cosignatures = try verifyCosignatures(note)
    return VerifiedCheckpoint(checkpoint, note, by: signers[0].key, cosignatures)
  }

  /// The keys that may sign a tree of that size: where one follows another both may, because either has signed there.
  private func keys(for size: UInt64) -> [VerifierKey] {
    var (keys, current) = ([VerifierKey](), key)
    for rotation in history.rotations {
      if size <= rotation.head.size { keys.append(current) }
      if size < rotation.head.size { return keys }
      current = rotation.key
    }
    return keys + [current]
  }

  /// The first rotation at a larger tree: the key that signed a tree of `size` entries has been replaced since, and may
  /// have been stolen. Nil where it has not.
  func replacement(after size: UInt64) -> KeyRotation? { history.rotations.first { $0.head.size > size } }

  private func verifyCosignatures(_ note: SignedNote) throws(LogError) -> [VerifiedCheckpoint.Cosignature] {
    let known = note.signatures.filter { signature in policy.witnesses.contains { $0.isNamed(by: signature) } }
    var cosignatures: [VerifiedCheckpoint.Cosignature] = []
    if !known.isEmpty {
      for (key, signature) in try note.verified(by: policy.witnesses) {
        guard let time = VerifierKey.time(of: signature.bytes) else { preconditionFailure("it was verified") }
        cosignatures.append(VerifiedCheckpoint.Cosignature(witness: key, time: time))
      }
    }
    guard Set(cosignatures.map(\.witness)).count >= policy.threshold else {
      throw LogError(
        .notCosigned, "", "cosigned by \(Set(cosignatures.map(\.witness)).count) of \(policy.threshold) witnesses")
    }
    return cosignatures
  }
}
