/// A log that was verified as a whole.
package struct VerifiedLog: Sendable {
  /// The newest checkpoint.
  package let checkpoint: VerifiedCheckpoint
  /// Trust in the log, with the keys that followed the first one.
  package let trust: LogTrust
}

extension LogView {
  /// Verifies a whole log: signatures and cosignatures of its checkpoint, every entry, every hash of every tile, the root,
  /// and that the log continues the trees of `older`, which are known from elsewhere.
  ///
  /// It reads each file once, in the order of entries, and keeps no more than a bundle and a tile of each level. Returns the
  /// first place that does not fit; throws `.failed` where the log cannot be read to its end.
  ///
  /// - Parameters:
  ///   - progress: Called every 256 entries, with how many were verified, of how many.
  ///   - entry: Called with each entry and its index. That it stands in the log is proven only when all of it is verified.
  package static func verify(
    _ source: any LogSource, trusting trust: LogTrust, since older: [TreeHead],
    progress: (_ verified: UInt64, _ size: UInt64) -> Void,
    entry: (_ index: UInt64, _ entry: RawSpan) throws -> Void
  ) async throws -> Result<VerifiedLog, LogFinding> {
    do {
      let (checkpoint, trust) = try await open(source, trusting: trust, reaching: older.map(\.size).max() ?? 0)
      let known = older + trust.history.rotations.map(\.head)
      var tree = WholeTree(source, checkpoint.checkpoint.head, known: known)
      try await tree.verify(progress: progress, entry: entry)
      return .success(VerifiedLog(checkpoint: checkpoint, trust: trust))
    } catch let finding as LogFinding {
      return .failure(finding)
    }
  }

  /// The log's checkpoint, verified, and trust in the log with the keys of its history. Throws a `LogFinding` where they are
  /// not to be believed.
  ///
  /// A log shows its newest checkpoint before its witnesses have cosigned it. Where that one lacks the cosignatures that
  /// are asked for, the last one that all witnesses of the log have cosigned stands in for it, and says so.
  ///
  /// A rotation may happen meanwhile. The keys are read behind the checkpoint, so that a new key's is not taken for a
  /// stranger's; and both once more where the keys tell of a larger tree, which was published before they were.
  package static func open(
    _ source: any LogSource, trusting trust: LogTrust
  ) async throws -> (checkpoint: VerifiedCheckpoint, trust: LogTrust) {
    try await open(source, trusting: trust, reaching: 0)
  }

  /// The same. What has fewer than `known` entries stands in for nothing: the log was seen larger.
  private static func open(
    _ source: any LogSource, trusting trust: LogTrust, reaching known: UInt64
  ) async throws -> (checkpoint: VerifiedCheckpoint, trust: LogTrust) {
    var trust = trust
    for _ in 0..<3 {
      let note = try await readNote(of: source)
      trust = try await follow(trust, in: source)
      let size = try await judging(LogPath.checkpoint) { try Checkpoint(note.text).size }
      if trust.replacement(after: size) == nil {
        return (try await verify(note, of: source, trusting: trust, reaching: known), trust)
      }
    }
    let note = try await readNote(of: source)
    return (try await verify(note, of: source, trusting: trust, reaching: known), trust)
  }

  /// The newest checkpoint of a source, verified, or the one that stands in for it.
  private static func verify(
    _ note: SignedNote, of source: any LogSource, trusting trust: LogTrust, reaching known: UInt64
  ) async throws -> VerifiedCheckpoint {
    do {
      return try await verify(note, trusting: trust)
    } catch let finding as LogFinding where finding.kind == .notCosigned {
      let newest = try await judging(LogPath.checkpoint) { try Checkpoint(note.text).head }
      let standIn = try await judging(LogPath.witnessed) { () async throws -> VerifiedCheckpoint? in
        guard let bytes = try await source.read(LogPath.witnessed, limit: SignedNote.maximumByteCount) else {
          return nil
        }
        var verified = try trust.verify(SignedNote(bytes))
        verified.uncosignedSize = newest.size
        return verified
      }
      // One by a key that was replaced since can be of anybody who has that key.
      guard let standIn, standIn.checkpoint.size >= known,
        trust.replacement(after: standIn.checkpoint.size) == nil
      else { throw finding }
      try await expectOneTree(standIn.checkpoint.head, newest, in: source)
      return standIn
    }
  }

  /// Throws a `LogFinding` where of two trees that the log has signed one does not continue the other: witnesses that
  /// refuse another log than the one that they have seen are no slow ones.
  private static func expectOneTree(_ one: TreeHead, _ other: TreeHead, in source: any LogSource) async throws {
    let (older, newer) = one.size < other.size ? (one, other) : (other, one)
    guard try await LogView(source, at: newer).consistencyProof(from: older.size).older == older else {
      throw LogFinding(
        older.size == newer.size ? .splitView : .rewritten, LogPath.checkpoint,
        "the log has signed a tree of \(one.size) entries, which is cosigned, and one of \(other.size) that is another")
    }
  }

  /// The log's checkpoint, verified. Throws a `LogFinding` where it is not to be believed, or smaller than the tree at
  /// which the log's key was replaced.
  package static func readCheckpoint(
    of source: any LogSource, trusting trust: LogTrust
  ) async throws -> VerifiedCheckpoint {
    try await verify(readNote(of: source), trusting: trust)
  }

  private static func readNote(of source: any LogSource) async throws -> SignedNote {
    let path = LogPath.checkpoint
    return try await judging(path) {
      guard let bytes = try await source.read(path, limit: SignedNote.maximumByteCount) else {
        throw LogFinding(.missing, path, "a log has a checkpoint")
      }
      return try SignedNote(bytes)
    }
  }

  private static func verify(_ note: SignedNote, trusting trust: LogTrust) async throws -> VerifiedCheckpoint {
    let path = LogPath.checkpoint
    return try await judging(path) {
      let verified = try trust.verify(note)
      if let head = trust.replacement(after: verified.checkpoint.size)?.head {
        throw LogFinding(
          .shrunk, path, "\(verified.checkpoint.size) entries, after a rotation of the key at \(head.size)")
      }
      return verified
    }
  }

  /// Trust in the log with the keys of its history, where it has one. Throws a `LogFinding` where that is not to be
  /// believed.
  package static func follow(_ trust: LogTrust, in source: any LogSource) async throws -> LogTrust {
    try await judging(LogPath.keys) {
      guard let bytes = try await source.read(LogPath.keys, limit: KeyHistory.maximumByteCount) else { return trust }
      return try trust.following(bytes)
    }
  }

  private static func judging<Value>(_ path: String, _ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch let error as LogError {
      throw try LogFinding(error, in: path)
    }
  }
}
