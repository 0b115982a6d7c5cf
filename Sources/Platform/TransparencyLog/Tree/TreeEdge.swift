/// The right edge of a Merkle tree: at most 255 hashes per level, enough to append entries and to compute the root.
struct TreeEdge: Sendable, Equatable {
  /// A tile that has just become full.
  struct FullTile: Sendable, Equatable {
    let path: TilePath
    let hashes: [MerkleHash]
  }

  /// The number of entries.
  private(set) var size: UInt64 = 0
  /// Of each level, the lowest first, the hashes of the tile that is not full yet.
  private(set) var levels: [[MerkleHash]] = [[]]

  /// The edge of the tree without entries.
  init() {}

  /// The edge of a tree of `size` entries; `hashes` gives those of the partial tile at a level.
  init(size: UInt64, _ hashes: (_ tile: TilePath) throws(LogError) -> [MerkleHash]) throws(LogError) {
    self.size = size
    levels = []
    for level in TilePath.levels where level == 0 || TilePath.count(.hashes(level: level), in: size) > 0 {
      var tile: [MerkleHash] = []
      if let path = TilePath.edge(.hashes(level: level), of: size) {
        tile = try hashes(path)
        precondition(tile.count == path.width)
      }
      levels.append(tile)
    }
  }

  /// The same edge with other hashes of the entries that are not in a full tile.
  func replacing(leaves: [MerkleHash]) -> TreeEdge {
    precondition(leaves.count == levels[0].count)
    var edge = self
    edge.levels[0] = leaves
    return edge
  }

  /// Appends an entry by its hash. The caller then takes out full tiles until there is none.
  mutating func append(_ leaf: MerkleHash) { append([leaf]) }

  /// Appends entries by their hashes, up to the end of the lowest tile at most.
  mutating func append(_ leaves: [MerkleHash]) {
    precondition(levels[0].count + leaves.count <= TilePath.fullWidth, "a full tile was not taken out")
    if levels[0].isEmpty { levels[0] = leaves } else { levels[0].append(contentsOf: leaves) }
    size += UInt64(leaves.count)
  }

  /// Takes out the lowest tile that is full, whose root then stands in the level above; nil where there is none.
  mutating func takeFullTile() -> FullTile? {
    guard let level = levels.firstIndex(where: { $0.count == TilePath.fullWidth }) else { return nil }
    var hashes: [MerkleHash] = []
    hashes.reserveCapacity(TilePath.fullWidth)
    swap(&hashes, &levels[level])
    if level + 1 == levels.count { levels.append([]) }
    levels[level + 1].append(.root(over: hashes))
    let count = TilePath.count(.hashes(level: level + 1), in: size)
    return FullTile(path: TilePath(.hashes(level: level), count - 1), hashes: hashes)
  }

  /// The root of the tree.
  var root: MerkleHash {
    // A level's hashes are subtrees of one height; what the levels below come to is one more of them, which is lower.
    var lower: MerkleHash?
    for hashes in levels {
      let subtrees = hashes + (lower.map { [$0] } ?? [])
      if !subtrees.isEmpty { lower = .root(over: subtrees) }
    }
    return lower ?? .empty
  }

  /// The head of the tree.
  var head: TreeHead { TreeHead(size: size, root: root) }
}
