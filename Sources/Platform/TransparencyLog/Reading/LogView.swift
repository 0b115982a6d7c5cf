/// A log at a given tree, read from any source. Everything that it returns is proven against the root.
package struct LogView: Sendable {
  /// The source that the log is read from.
  package let source: any LogSource
  /// The trusted tree.
  package let head: TreeHead

  /// A view of the log at a trusted tree: that of a `VerifiedCheckpoint`, or the writer's own.
  package init(_ source: any LogSource, at head: TreeHead) { (self.source, self.head) = (source, head) }

  /// The proof that the tree has the entry at `index`, and the hash of that entry.
  ///
  /// Throws `.missing` for an index beyond the tree or a tile that is not there, and `.damaged` where tiles do not lead to
  /// the root.
  package func inclusionProof(of index: UInt64) async throws(LogError) -> (leaf: MerkleHash, proof: InclusionProof) {
    guard index < head.size else { throw LogError(.missing, "", "no entry \(index) in a log of \(head.size)") }
    let ranges = [index..<index + 1] + TreeShape.inclusion(of: index, in: head.size)
    let hashes = try await hashes(ProofPlan(size: head.size, ranges: ranges))
    let proof = InclusionProof(Array(hashes.dropFirst()))
    guard proof.proves(hashes[0], at: index, in: head) else { throw .doNotLeadToRoot }
    return (hashes[0], proof)
  }

  /// The proof that the tree begins with that of `size` entries, and the head of that tree.
  ///
  /// Throws `.missing` for a size beyond the tree or a tile that is not there, and `.damaged` where tiles do not lead to
  /// the root.
  package func consistencyProof(
    from size: UInt64
  ) async throws(LogError) -> (older: TreeHead, proof: ConsistencyProof) {
    guard size <= head.size else { throw LogError(.missing, "", "no tree of \(size) in a log of \(head.size)") }
    if size == 0 { return (.empty, ConsistencyProof([])) }
    if size == head.size { return (head, ConsistencyProof([])) }
    let ranges = [0..<size] + TreeShape.consistency(from: size, to: head.size)
    let hashes = try await hashes(ProofPlan(size: head.size, ranges: ranges))
    let (older, proof) = (TreeHead(size: size, root: hashes[0]), ConsistencyProof(Array(hashes.dropFirst())))
    guard proof.proves(head, continues: older) else { throw .doNotLeadToRoot }
    return (older, proof)
  }

  /// Gives each entry of a range to `body`, with its index, once it is proven to stand there.
  ///
  /// Throws `.missing` for a range beyond the tree or a file that is not there, `.damaged` where entries and tiles do not
  /// lead to the root, and what `body` throws.
  package func entries(
    in range: Range<UInt64>, _ body: (_ index: UInt64, _ entry: RawSpan) throws -> Void
  ) async throws {
    guard range.upperBound <= head.size else {
      throw LogError(.missing, "", "no entries up to \(range.upperBound) in a log of \(head.size)")
    }
    var (next, tiles) = (range.lowerBound, [TilePath: [MerkleHash]]())
    while next < range.upperBound {
      let (path, bundle) = try await bundle(holding: next)
      let first = path.index * UInt64(TilePath.fullWidth)
      // What is proven is the first entry's hash, and with it all others of the bundle: they are its siblings.
      let plan = ProofPlan(size: head.size, ranges: TreeShape.inclusion(of: first, in: head.size))
      let hashes = Array(bundle.hashes.prefix(path.width))
      let leaves = TilePath(.hashes(level: 0), path.index, width: path.width)
      // The tiles above are mostly those of the bundle before.
      tiles = tiles.filter { plan.tiles.contains($0.key) }
      tiles[leaves] = hashes
      for tile in plan.tiles where tiles[tile] == nil { tiles[tile] = try await self.hashes(of: tile) }
      guard InclusionProof(plan.hashes(from: tiles)).proves(hashes[0], at: first, in: head) else {
        throw LogError(.damaged, path.text, "entries and tiles do not lead to the root")
      }
      let end = min(range.upperBound, first + UInt64(path.width))
      for index in next..<end {
        try unsafe body(index, bundle.bytes.span.bytes.extracting(bundle.entries[Int(index - first)]))
      }
      next = end
    }
  }

  /// The entry at `index`, once it is proven to stand there.
  package func entry(at index: UInt64) async throws -> [UInt8] {
    guard index < head.size else { throw LogError(.missing, "", "no entry \(index) in a log of \(head.size)") }
    var bytes: [UInt8] = []
    try await entries(in: index..<index + 1) { _, entry in
      bytes = unsafe entry.withUnsafeBytes { unsafe Array($0) }
    }
    return bytes
  }

  /// The bundle with an entry of the tree, at the path that this tree has it at, with as many entries at least.
  private func bundle(holding index: UInt64) async throws(LogError) -> (path: TilePath, bundle: EntryBundle) {
    let path = TilePath(.entries, holding: index, in: head.size)
    guard let read = try await source.read(path, limit: EntryBundle.maximumByteCount) else { throw .missing(path) }
    let bundle = EntryBundle(read.bytes)
    guard bundle.isWellFormed, bundle.entries.count == read.path.width else {
      throw LogError(.damaged, read.path.text, "not \(read.path.width) entries")
    }
    return (path, bundle)
  }

  private func hashes(_ plan: ProofPlan) async throws(LogError) -> [MerkleHash] {
    var tiles: [TilePath: [MerkleHash]] = [:]
    for tile in plan.tiles { tiles[tile] = try await hashes(of: tile) }
    return plan.hashes(from: tiles)
  }

  private func hashes(of tile: TilePath) async throws(LogError) -> [MerkleHash] {
    guard let read = try await source.read(tile, limit: LogPath.maximumTileSize) else { throw .missing(tile) }
    return try LogError.checking(read.path, read.bytes, for: tile)
  }
}

extension LogError {
  static let doNotLeadToRoot = LogError(.damaged, "", "the tiles do not lead to the root")

  static func missing(_ path: TilePath) -> LogError { LogError(.missing, path.text, "the file is not there") }

  /// The hashes of a tile, from the bytes of its file or of the full tile's.
  static func checking(_ path: TilePath, _ bytes: [UInt8], for tile: TilePath) throws(LogError) -> [MerkleHash] {
    guard let hashes = [MerkleHash](tile: bytes), hashes.count == path.width else {
      throw LogError(.damaged, path.text, "not \(path.width) hashes")
    }
    return Array(hashes.prefix(tile.width))
  }
}
