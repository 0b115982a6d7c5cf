/// The verification of all entries and tiles of a log, from the left to the right.
///
/// Entries are hashed as they come; a tile is compared with what the entries come to as soon as it is full.
struct WholeTree {
  private let source: any LogSource
  private let head: TreeHead
  /// Trees that the log has shown before, the smallest first, as far as they are not compared yet.
  private var known: ArraySlice<TreeHead>
  private var edge = TreeEdge()

  init(_ source: any LogSource, _ head: TreeHead, known: [TreeHead]) {
    (self.source, self.head) = (source, head)
    self.known = known.filter { $0 != head }.sorted { $0.size < $1.size }[...]
  }

  /// Throws a `LogFinding` at the first place that does not fit.
  mutating func verify(
    progress: (UInt64, UInt64) -> Void, entry body: (UInt64, RawSpan) throws -> Void
  ) async throws {
    try compareSizes()
    try compareKnown(with: [])
    while edge.size < head.size {
      let hashes = try await verifyBundle(body)
      try compareKnown(with: hashes)
      try await grow(by: hashes)
      progress(edge.size, head.size)
    }
    for level in TilePath.levels.dropFirst() {
      guard let path = TilePath.edge(.hashes(level: level), of: head.size) else { continue }
      try await compare(edge.levels[level], with: path)
    }
    guard edge.root == head.root else {
      throw LogFinding(.wrongRoot, LogPath.checkpoint, "entries and tiles come to another root")
    }
  }

  /// Compares the sizes of known trees before anything is read.
  private func compareSizes() throws(LogFinding) {
    for older in known where older.size >= head.size {
      throw older.size > head.size
        ? LogFinding(.shrunk, LogPath.checkpoint, "\(head.size) entries, after a checkpoint of \(older.size)")
        : LogFinding(.splitView, LogPath.checkpoint, "another root than that of a checkpoint of the same \(head.size)")
    }
  }

  /// Compares the known trees that end before the next entry, or among the next ones, which have these hashes.
  private mutating func compareKnown(with hashes: [MerkleHash]) throws(LogFinding) {
    while let older = known.first, older.size <= edge.size + UInt64(hashes.count) {
      known.removeFirst()
      var edge = edge
      edge.append(Array(hashes.prefix(Int(older.size - edge.size))))
      while edge.takeFullTile() != nil {}
      guard edge.root == older.root else {
        throw LogFinding(
          .rewritten, LogPath.checkpoint, "the first \(older.size) entries are not those of an older checkpoint")
      }
    }
  }

  /// Reads the next bundle and its tile, and returns the hashes of its entries, which are those of the tile.
  private func verifyBundle(_ body: (UInt64, RawSpan) throws -> Void) async throws -> [MerkleHash] {
    let path = TilePath(.entries, holding: edge.size, in: head.size)
    var read = try await readBundle(path)
    let tile = try await tile(TilePath(.hashes(level: 0), path.index, width: path.width))
    var hashes: [MerkleHash] = []
    hashes.reserveCapacity(TilePath.fullWidth)
    for (place, range) in read.bundle.entries.prefix(path.width).enumerated() {
      hashes.append(read.bundle.takeHash(of: place))
      guard hashes[place] == tile.hashes[place] else { break }
      try unsafe body(edge.size + UInt64(place), read.bundle.bytes.span.bytes.extracting(range))
    }
    if let place = hashes.indices.first(where: { hashes[$0] != tile.hashes[$0] }) {
      throw try await finding(at: place, of: read.bundle, at: read.path, tile)
    }
    let (count, isWellFormed) = (read.bundle.entries.count, read.bundle.isWellFormed)
    guard isWellFormed, count == read.path.width else {
      throw LogFinding(
        .wrongCount, read.path.text, entry: edge.size + UInt64(hashes.count),
        "not \(read.path.width) entries\(isWellFormed ? " but \(count)" : " and nothing else")")
    }
    return hashes
  }

  /// The finding for an entry that does not fit its hash. The tree above the tile tells which of the two is wrong.
  private func finding(
    at place: Int, of bundle: EntryBundle, at path: TilePath, _ tile: (path: TilePath, hashes: [MerkleHash])
  ) async throws -> LogFinding {
    let entry = edge.size + UInt64(place)
    let entries = Array(bundle.hashes.prefix(tile.hashes.count))
    let isOfTree = try await isOfTree(entries)
    if isOfTree, entries.count == tile.hashes.count {
      return LogFinding(.wrongHash, tile.path.text, entry: entry, "hash \(place) is not that of its entry")
    }
    return LogFinding(.wrongEntry, path.text, entry: entry, "entry \(place) is not that of its hash")
  }

  /// Whether the tree above has just these hashes next.
  private func isOfTree(_ hashes: [MerkleHash]) async throws -> Bool {
    guard hashes.count == TilePath.fullWidth else {
      var edge = edge
      edge.append(hashes)
      return edge.head == head
    }
    let (kind, item) = (TilePath.Kind.hashes(level: 1), edge.size / UInt64(TilePath.fullWidth))
    let above = try await tile(TilePath(kind, holding: item, in: head.size))
    return above.hashes[Int(item % UInt64(TilePath.fullWidth))] == .root(over: hashes)
  }

  /// Takes the entries in, and compares the tiles above that became full with them.
  private mutating func grow(by hashes: [MerkleHash]) async throws {
    edge.append(hashes)
    while let full = edge.takeFullTile() {
      // That of the entries themselves is compared already.
      if full.path.kind != .hashes(level: 0) { try await compare(full.hashes, with: full.path) }
    }
  }

  private func compare(_ hashes: [MerkleHash], with path: TilePath) async throws {
    let tile = try await tile(path)
    guard let place = hashes.indices.first(where: { hashes[$0] != tile.hashes[$0] }) else { return }
    let item = path.index * UInt64(TilePath.fullWidth) + UInt64(place)
    let below = TilePath(.hashes(level: path.kind.level - 1), item)
    throw LogFinding(
      .wrongHash, tile.path.text, entry: item << UInt64(8 * path.kind.level),
      "hash \(place) is not that of \(below)")
  }

  /// The hashes of a tile, of the full one where the partial one is gone.
  private func tile(_ path: TilePath) async throws -> (path: TilePath, hashes: [MerkleHash]) {
    let (found, bytes) = try await read(path, limit: LogPath.maximumTileSize)
    guard let hashes = [MerkleHash](tile: bytes), hashes.count == found.width else {
      throw LogFinding(.malformed, found.text, "not \(found.width) hashes")
    }
    return (found, found == path ? hashes : Array(hashes.prefix(path.width)))
  }

  /// A bundle whose bytes nobody else holds: they are written to (`EntryBundle.takeHash`).
  private func readBundle(_ path: TilePath) async throws -> (path: TilePath, bundle: EntryBundle) {
    let read = try await read(path, limit: EntryBundle.maximumByteCount)
    return (read.path, EntryBundle(read.bytes))
  }

  private func read(_ path: TilePath, limit: Int) async throws -> (path: TilePath, bytes: [UInt8]) {
    do throws(LogError) {
      if let read = try await source.read(path, limit: limit) { return read }
    } catch {
      throw try LogFinding(error, in: path.text)
    }
    throw LogFinding(.missing, path.text, entry: edge.size, "the file is not there")
  }
}
