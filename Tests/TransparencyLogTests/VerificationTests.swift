import TestSupport
import Testing

@testable import TransparencyLog

/// A whole log, and each way in which one can be other than it was.
@Suite struct VerificationTests {
  private static let origin = "example.com/log"
  /// More than two tiles on the lowest level, of which the last is partial.
  private static let entries = sampleEntries(700)

  private let signer: NoteSigner

  init() throws { signer = try NoteSigner.generate(name: Self.origin).signer }

  private var trust: LogTrust {
    get throws { try LogTrust(origin: Self.origin, key: signer.key, policy: .none) }
  }

  private func log(_ entries: [[UInt8]] = entries) async throws -> MemoryLog {
    let log = MemoryLog(entries)
    try await sign(NaiveTree(entries: entries).head(entries.count), in: log)
    return log
  }

  private func sign(_ head: TreeHead, in log: MemoryLog) async throws {
    log["checkpoint"] = try await SignedNote.sign(
      Checkpoint(origin: Self.origin, head: head).text, with: signer
    ).bytes
  }

  private func verdict(_ log: MemoryLog, since older: [TreeHead] = []) async throws -> Result<VerifiedLog, LogFinding> {
    try await LogView.verify(log, trusting: trust, since: older, progress: { _, _ in }, entry: { _, _ in })
  }

  private func expectFinding(
    _ log: MemoryLog, since older: [TreeHead] = [], _ kind: LogFinding.Kind, _ path: String, entry: UInt64? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    switch try await verdict(log, since: older) {
    case .success: Issue.record("it holds", sourceLocation: sourceLocation)
    case .failure(let finding):
      #expect(
        finding.kind == kind && finding.path == path && finding.entry == entry, "\(finding)",
        sourceLocation: sourceLocation)
    }
  }

  private func expectToHold(
    _ log: MemoryLog, since older: [TreeHead] = [], sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    if case .failure(let finding) = try await verdict(log, since: older) {
      Issue.record("\(finding)", sourceLocation: sourceLocation)
    }
  }

  @Test(arguments: [0, 1, 2, 255, 256, 257, 511, 512, 513, 700])
  func aLogOfAnySizeHoldsAndGivesItsEntriesInOrder(size: Int) async throws {
    let entries = Array(Self.entries.prefix(size))
    let tree = NaiveTree(entries: entries)
    let log = try await log(entries)
    let older = [0, 1, 2, 100, 255, 256, 257, 512, size].filter { $0 <= size }.map(tree.head)
    var (read, steps) = ([[UInt8]](), [UInt64]())
    let verified = try await LogView.verify(log, trusting: trust, since: older) { verified, of in
      steps.append(verified)
      #expect(of == UInt64(size))
    } entry: { index, entry in
      #expect(index == UInt64(read.count))
      read.append(unsafe entry.withUnsafeBytes { unsafe Array($0) })
    }.get()
    #expect(verified.checkpoint.checkpoint.head == tree.head(size) && verified.checkpoint.key == signer.key)
    #expect(read == entries && steps == (0..<size).filter { $0 % 256 == 255 || $0 == size - 1 }.map { UInt64($0 + 1) })
    #expect(Set(log.read).count == log.read.count, "a file is read once")
  }

  /// The third level, and a level whose only tile is full.
  @Test(arguments: [65_535, 65_536, 65_537, 66_000])
  func aLogOfThreeLevelsHolds(size: Int) async throws {
    let log = MemoryLog((0..<size).map { Array("\($0)".utf8) })
    var edge = TreeEdge()
    for number in 0..<size {
      edge.append(.leaf(Array("\(number)".utf8)))
      while edge.takeFullTile() != nil {}
    }
    try await sign(edge.head, in: log)
    try await expectToHold(log)
    guard let path = TilePath.edge(.hashes(level: 2), of: UInt64(size)) else { return }
    log[path.text]?[0] ^= 1
    try await expectFinding(log, .wrongHash, path.text, entry: 0)
  }

  /// One bit of every entry of a bundle, of every hash, and of what stands around entries.
  @Test func anyByteThatWasChangedIsFound() async throws {
    let log = try await log()
    for number in [0, 1, 3, 100, 255, 256, 511, 512, 699] where !Self.entries[number].isEmpty {
      let path = TilePath(.entries, holding: UInt64(number), in: 700).text
      let bundle = EntryBundle(try #require(log[path]))
      let range = bundle.entries[number % 256]
      for place in [range.lowerBound, range.upperBound - 1] {
        log[path]?[place] ^= 1
        try await expectFinding(log, .wrongEntry, path, entry: UInt64(number))
        log[path] = bundle.bytes
      }
    }
    for number in [0, 1, 255, 256, 511, 512, 699] {
      let path = TilePath(.hashes(level: 0), holding: UInt64(number), in: 700).text
      log[path]?[number % 256 * 32 + 31] ^= 0x80
      try await expectFinding(log, .wrongHash, path, entry: UInt64(number))
      log[path]?[number % 256 * 32 + 31] ^= 0x80
    }
    for number in 0..<2 as Range<UInt64> {
      log["tile/1/000.p/2"]?[Int(number) * 32] ^= 1
      try await expectFinding(log, .wrongHash, "tile/1/000.p/2", entry: number * 256)
      log["tile/1/000.p/2"]?[Int(number) * 32] ^= 1
    }
    // The lengths before entries.
    for (place, entry) in [(0, 0), (1, 0)] as [(Int, UInt64)] {
      log["tile/entries/000"]?[place] ^= 1
      try await expectFinding(log, .wrongEntry, "tile/entries/000", entry: entry)
      log["tile/entries/000"]?[place] ^= 1
    }
    try await expectToHold(log)
  }

  /// The bundles of other entries, beside the tiles of those that were logged.
  @Test(arguments: [0, 1, 100, 254, 255, 256, 300, 512, 600, 698])
  func entriesThatWereRemovedExchangedOrRepeatedAreFound(number: Int) async throws {
    let path = TilePath(.entries, holding: UInt64(number), in: 700)
    let first = Int(path.index) * 256
    let entries = Array(Self.entries[first..<first + path.width])
    let place = number - first
    var (fewer, exchanged, repeated) = (entries, entries, entries)
    fewer.remove(at: place)
    repeated.insert(entries[place], at: place)
    let log = try await log()
    log[path.text] = Self.bundle(fewer)
    let isLast = place == entries.count - 1
    try await expectFinding(log, isLast ? .wrongCount : .wrongEntry, path.text, entry: UInt64(number))
    log[path.text] = Self.bundle(repeated)
    try await expectFinding(log, isLast ? .wrongCount : .wrongEntry, path.text, entry: UInt64(number + 1))
    if !isLast {
      exchanged.swapAt(place, place + 1)
      log[path.text] = Self.bundle(exchanged)
      try await expectFinding(log, .wrongEntry, path.text, entry: UInt64(number))
    }
    log[path.text] = Self.bundle(entries) + [0]
    try await expectFinding(log, .wrongCount, path.text, entry: UInt64(first + entries.count))
  }

  private static func bundle(_ entries: [[UInt8]]) -> [UInt8] {
    var bytes: [UInt8] = []
    for entry in entries { EntryBundle.append(entry, to: &bytes) }
    return bytes
  }

  /// The forger makes all files anew, up to a level; what lies above still knows.
  @Test func anEntryThatWasReplacedWithItsTilesIsFoundAbove() async throws {
    var entries = Self.entries
    entries[300] = Array("another".utf8)
    let (log, forged) = (try await log(), MemoryLog(entries))
    for path in ["tile/entries/001", "tile/0/001"] { log[path] = forged[path] }
    try await expectFinding(log, .wrongHash, "tile/1/000.p/2", entry: 256)
    log["tile/1/000.p/2"] = forged["tile/1/000.p/2"]
    try await expectFinding(log, .wrongRoot, "checkpoint")
    // With a signature for it, only an older checkpoint helps, or a witness.
    let (tree, other) = (NaiveTree(entries: Self.entries), NaiveTree(entries: entries))
    try await sign(other.head(700), in: log)
    try await expectToHold(log)
    try await expectToHold(log, since: [tree.head(300)])
    try await expectFinding(log, since: [tree.head(301)], .rewritten, "checkpoint")
    try await expectFinding(log, since: [tree.head(200), tree.head(512), other.head(600)], .rewritten, "checkpoint")
    try await expectFinding(log, since: [tree.head(700)], .splitView, "checkpoint")
  }

  @Test func whatWasCutOffIsFound() async throws {
    let tree = NaiveTree(entries: Self.entries)
    // With a checkpoint that the log has signed before.
    let log = try await log(Array(Self.entries.prefix(600)))
    try await expectToHold(log)
    try await expectFinding(log, since: [tree.head(700)], .shrunk, "checkpoint")
    // With the newest checkpoint, and fewer files.
    try await sign(tree.head(700), in: log)
    try await expectFinding(log, .missing, "tile/entries/002.p/188", entry: 512)
  }

  @Test func filesThatAreMissingOrNotOfTheirFormAreNamed() async throws {
    let log = try await log()
    for (path, entry) in [
      ("tile/entries/001", 256), ("tile/0/001", 256), ("tile/1/000.p/2", 700), ("tile/0/002.p/188", 512),
    ] as [(String, UInt64)] {
      let bytes = try #require(log[path])
      log[path] = nil
      try await expectFinding(log, .missing, path, entry: entry)
      if !path.contains("entries") {
        for changed in [Array(bytes.dropLast()), Array(bytes.dropLast(32)), [], bytes + [0]] {
          log[path] = changed
          try await expectFinding(log, .malformed, path)
        }
      }
      log[path] = [UInt8](repeating: 0, count: 20_000_000)
      try await expectFinding(log, .malformed, path)
      log[path] = bytes
    }
    log["checkpoint"] = nil
    try await expectFinding(log, .missing, "checkpoint")
    for bytes: [UInt8] in [[], [0], Array("text\n\n— a AAAAAAAA\n".utf8), [UInt8](repeating: 0x61, count: 2_000_000)] {
      log["checkpoint"] = bytes
      try await expectFinding(log, .malformed, "checkpoint")
    }
  }

  /// A reader who comes late finds the full file in the place of a partial one.
  @Test func fullFilesStandInForPartialOnes() async throws {
    let (log, larger) = (try await log(), MemoryLog(sampleEntries(800)))
    for name in ["tile/entries/002", "tile/0/002"] {
      log["\(name).p/188"] = nil
      log[name] = larger[name]
    }
    try await expectToHold(log)
    log["tile/0/002"]?[187 * 32] ^= 1
    try await expectFinding(log, .wrongHash, "tile/0/002", entry: 699)
    log["tile/0/002"]?[187 * 32] ^= 1
    let view = LogView(log, at: NaiveTree(entries: Self.entries).head(700))
    #expect(try await view.entry(at: 699) == Self.entries[699])
    _ = try await view.inclusionProof(of: 699)
  }

  @Test func aForgedCheckpointIsNotBelieved() async throws {
    let log = try await log()
    let head = NaiveTree(entries: Self.entries).head(700)
    let stranger = try NoteSigner.generate(name: Self.origin).signer
    let text = Checkpoint(origin: Self.origin, head: head).text
    let ours = try await SignedNote.sign(text, with: signer).signatures
    log["checkpoint"] = try await SignedNote.sign(text, with: stranger).bytes
    try await expectFinding(log, .unsigned, "checkpoint")
    let smaller = Checkpoint(origin: Self.origin, head: TreeHead(size: 699, root: head.root)).text
    log["checkpoint"] = try SignedNote(text: smaller, ours).bytes
    try await expectFinding(log, .badSignature, "checkpoint")
    let other = Checkpoint(origin: "example.com/other", head: head).text
    log["checkpoint"] = try await SignedNote.sign(other, with: signer).bytes
    try await expectFinding(log, .wrongOrigin, "checkpoint")
    log["checkpoint"] = try SignedNote(text: text, ours).bytes
    try await expectToHold(log)
    let witness = try Cosigner(name: "witness.example", seed: [UInt8](repeating: 1, count: 32)).key
    let policy = try WitnessPolicy(1, of: [witness])
    let strict = try LogTrust(origin: Self.origin, key: signer.key, policy: policy)
    let outcome = try await LogView.verify(log, trusting: strict, since: [], progress: { _, _ in }, entry: { _, _ in })
    let finding = #expect(throws: LogFinding.self) { try outcome.get() }
    #expect(finding?.kind == .notCosigned)
  }

  @Test func keysThatAreNotFollowedAreFound() async throws {
    let log = try await log()
    let (next, stranger) = (
      try NoteSigner.generate(name: Self.origin).signer, try NoteSigner.generate(name: Self.origin).signer
    )
    let tree = NaiveTree(entries: Self.entries)
    log["keys"] = [1]
    try await expectFinding(log, .malformed, "keys")
    log["keys"] = try await KeyRotation.sign(
      Checkpoint(origin: Self.origin, head: tree.head(700)), from: stranger, to: next
    ).note.bytes
    try await expectFinding(log, .unsigned, "keys")
    // The tree at which the key was rotated is one that the log has to continue.
    let elsewhere = TreeHead(size: 300, root: .leaf([1]))
    log["keys"] = try await KeyRotation.sign(
      Checkpoint(origin: Self.origin, head: elsewhere), from: signer, to: next
    ).note.bytes
    log["checkpoint"] = try await SignedNote.sign(
      Checkpoint(origin: Self.origin, head: tree.head(700)).text, with: next
    ).bytes
    try await expectFinding(log, .rewritten, "checkpoint")
    log["keys"] = try await KeyRotation.sign(
      Checkpoint(origin: Self.origin, head: tree.head(300)), from: signer, to: next
    ).note.bytes
    #expect(try await verdict(log).get().trust.newestKey == next.key)
  }

  /// The key is replaced between the first reading and the second one.
  @Test(arguments: ["checkpoint", "keys"])
  func aRotationMeanwhileIsNoFinding(first: String) async throws {
    struct Changing: LogSource {
      let log: MemoryLog
      let path: String
      let after: [String: [UInt8]]
      func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]? {
        let bytes = try await log.read(path, limit: limit)
        if path == self.path { for (path, bytes) in after { log[path] = bytes } }
        return bytes
      }
    }
    let (log, next) = (try await log(), try NoteSigner.generate(name: Self.origin).signer)
    let tree = NaiveTree(entries: Self.entries)
    let at = Checkpoint(origin: Self.origin, head: tree.head(first == "keys" ? 300 : 700))
    log["checkpoint"] = try await SignedNote.sign(
      Checkpoint(origin: Self.origin, head: tree.head(300)).text, with: signer
    ).bytes
    let after = [
      "keys": try await KeyRotation.sign(at, from: signer, to: next).note.bytes,
      "checkpoint": try await SignedNote.sign(
        Checkpoint(origin: Self.origin, head: tree.head(700)).text, with: next
      ).bytes,
    ]
    let source = Changing(log: log, path: first, after: after)
    let trust = try LogTrust(origin: Self.origin, key: signer.key, policy: .none)
    let opened = try await LogView.open(source, trusting: trust)
    #expect([300, 700].contains(opened.checkpoint.checkpoint.size))
    #expect(try await LogView.open(source, trusting: trust).checkpoint.key == next.key)
  }

  /// A log shows a checkpoint before a witness has cosigned it. One that is cosigned stands beside it.
  @Test func theLastCosignedCheckpointStandsInForOneThatIsNotYetCosigned() async throws {
    let (log, tree) = (try await log(), NaiveTree(entries: Self.entries))
    let witness = try Cosigner(name: "witness.example/1", seed: [UInt8](repeating: 1, count: 32))
    let trust = try LogTrust(origin: Self.origin, key: signer.key, policy: WitnessPolicy(1, of: [witness.key]))
    func verdict(since older: [TreeHead] = []) async throws -> Result<VerifiedLog, LogFinding> {
      try await LogView.verify(log, trusting: trust, since: older, progress: { _, _ in }, entry: { _, _ in })
    }
    func expectNotCosigned(since older: [TreeHead] = [], _ comment: Comment) async throws {
      let outcome = try await verdict(since: older)
      #expect(throws: LogFinding.self, comment) { try outcome.get() }
      if case .failure(let finding) = outcome { #expect(finding.kind == .notCosigned, "\(finding), \(comment)") }
    }
    try await expectNotCosigned("there is none")
    let note = try await SignedNote.sign(Checkpoint(origin: Self.origin, head: tree.head(512)).text, with: signer)
    log["checkpoint.witnessed"] = note.bytes
    try await expectNotCosigned("it is not cosigned either")
    let signatures = note.signatures + [try witness.cosign(note.text, at: 7)]
    log["checkpoint.witnessed"] = try SignedNote(text: note.text, signatures).bytes
    let verified = try await verdict(since: [tree.head(300)]).get().checkpoint
    #expect(verified.checkpoint.head == tree.head(512) && verified.uncosignedSize == 700)
    #expect(verified.cosignatures.map(\.witness) == [witness.key])
    #expect(try await LogView.open(log, trusting: trust).checkpoint.checkpoint.size == 512)
    try await expectNotCosigned(since: [tree.head(600)], "it is no log that has shrunk")
    let next = try NoteSigner.generate(name: Self.origin).signer
    log["keys"] = try await KeyRotation.sign(
      Checkpoint(origin: Self.origin, head: tree.head(700)), from: signer, to: next
    ).note.bytes
    try await expectNotCosigned("it is by a key that was replaced")
  }

  /// Witnesses do not cosign what contradicts what they have seen: that is no reason to go by that alone.
  @Test func whatStandsInIsOfTheSameTree() async throws {
    let log = try await log()
    let tree = NaiveTree(entries: Self.entries)
    let witness = try Cosigner(name: "witness.example/1", seed: [UInt8](repeating: 1, count: 32))
    let trust = try LogTrust(origin: Self.origin, key: signer.key, policy: WitnessPolicy(1, of: [witness.key]))
    func expect(_ kind: LogFinding.Kind?, of newest: TreeHead, with cosigned: TreeHead) async throws {
      try await sign(newest, in: log)
      let note = try await SignedNote.sign(Checkpoint(origin: Self.origin, head: cosigned).text, with: signer)
      let signatures = note.signatures + [try witness.cosign(note.text, at: 7)]
      log["checkpoint.witnessed"] = try SignedNote(text: note.text, signatures).bytes
      do {
        let checkpoint = try await LogView.open(log, trusting: trust).checkpoint
        #expect(kind == nil && checkpoint.checkpoint.head == cosigned && checkpoint.cosignedAt == 7)
      } catch let finding as LogFinding {
        #expect(finding.kind == kind, "\(finding)")
      }
    }
    let other = tree.head(300).root
    try await expect(nil, of: tree.head(700), with: tree.head(512))
    // It was cosigned between the two times at which something was read.
    try await expect(nil, of: tree.head(512), with: tree.head(700))
    try await expect(.splitView, of: TreeHead(size: 700, root: other), with: tree.head(700))
    try await expect(.rewritten, of: TreeHead(size: 512, root: other), with: tree.head(700))
    try await expect(.rewritten, of: tree.head(700), with: TreeHead(size: 512, root: other))
  }

  @Test func aLogThatCannotBeReadIsNoFinding() async throws {
    struct Broken: LogSource {
      let log: MemoryLog
      let path: String
      func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]? {
        if path == self.path { throw LogError(.failed, path, "no connection") }
        return try await log.read(path, limit: limit)
      }
    }
    for path in ["keys", "checkpoint", "tile/0/001", "tile/entries/002.p/188", "tile/1/000.p/2"] {
      let broken = Broken(log: try await log(), path: path)
      await expect(.failed) {
        _ = try await LogView.verify(broken, trusting: trust, since: [], progress: { _, _ in }, entry: { _, _ in })
      }
    }
  }

  @Test func whoReadsEntriesCanEndIt() async throws {
    let log = try await log()
    await #expect(throws: CancellationError.self) {
      try await LogView.verify(
        log, trusting: trust, since: [], progress: { _, _ in },
        entry: { index, _ in if index == 300 { throw CancellationError() } })
    }
    #expect(!log.read.contains("tile/0/002.p/188"))
  }

  /// A size that nobody has written costs no more than what is there.
  @Test(arguments: [701, 1 << 40, UInt64.max])
  func hostileSizesEndAtTheFirstFileThatIsMissing(size: UInt64) async throws {
    let log = try await log()
    try await sign(TreeHead(size: size, root: .empty), in: log)
    let outcome = try await verdict(log)
    let finding = #expect(throws: LogFinding.self) { try outcome.get() }
    #expect(finding?.kind == .missing && log.read.count < 20)
    let view = LogView(log, at: TreeHead(size: size, root: .empty))
    for index in [0, size / 2, size - 1] {
      await #expect(throws: LogError.self) { try await view.inclusionProof(of: index) }
      await #expect(throws: LogError.self) { try await view.consistencyProof(from: index + 1 == size ? 1 : index + 1) }
      await #expect(throws: LogError.self) { try await view.entry(at: index) }
    }
  }

  @Test func entriesAreReadWithProofOnly() async throws {
    let log = try await log()
    let view = LogView(log, at: NaiveTree(entries: Self.entries).head(700))
    for range in [0..<700, 0..<0, 700..<700, 255..<257, 511..<513, 600..<700, 3..<4] as [Range<UInt64>] {
      var read: [[UInt8]] = []
      try await view.entries(in: range) { index, entry in
        #expect(index == range.lowerBound + UInt64(read.count))
        read.append(unsafe entry.withUnsafeBytes { unsafe Array($0) })
      }
      #expect(read == Array(Self.entries[Int(range.lowerBound)..<Int(range.upperBound)]))
    }
    await expect(.missing) { try await view.entries(in: 0..<701) { _, _ in } }
    await expect(.missing) { _ = try await view.entry(at: 700) }
    await expect(.missing) { _ = try await view.inclusionProof(of: 700) }
    await expect(.missing) { _ = try await view.consistencyProof(from: 701) }
    // Nothing of a bundle is given out of which anything was changed, entry or tile.
    for path in ["tile/entries/001", "tile/0/002.p/188", "tile/1/000.p/2"] {
      let bytes = try #require(log[path])
      log[path]?[4] ^= 1
      await expect(.damaged) {
        try await view.entries(in: 256..<512) { _, _ in Issue.record("\(path) was changed") }
      }
      if !path.contains("entries") {
        await expect(.damaged) { _ = try await view.inclusionProof(of: 600) }
        await expect(.damaged) { _ = try await view.consistencyProof(from: 600) }
      }
      log[path] = bytes
    }
  }
}
