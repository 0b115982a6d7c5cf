/// The tiles that hashes of a tree follow from, and how.
struct ProofPlan: Sendable, Equatable {
  /// The number of entries of the tree.
  let size: UInt64
  /// The ranges of entries whose hashes are asked for.
  let ranges: [Range<UInt64>]

  /// The tiles that are needed, each once.
  var tiles: [TilePath] {
    var (tiles, seen) = ([TilePath](), Set<TilePath>())
    for range in ranges {
      for subtree in TreeShape.subtrees(of: range) where seen.insert(tile(of: subtree)).inserted {
        tiles.append(tile(of: subtree))
      }
    }
    return tiles
  }

  /// The hash of each range, from the hashes of the tiles that are needed.
  func hashes(from tiles: [TilePath: [MerkleHash]]) -> [MerkleHash] {
    ranges.map { range in
      // A node over complete subtrees, the smallest of which is the last and stands lowest.
      let roots = TreeShape.subtrees(of: range).map { subtree in
        guard let hashes = tiles[tile(of: subtree)] else { preconditionFailure("a tile that is needed is not there") }
        let first = Int(subtree.first % UInt64(TilePath.fullWidth))
        return MerkleHash.root(over: Array(hashes[first..<first + subtree.count]))
      }
      guard let last = roots.last else { return .empty }
      return roots.dropLast().reversed().reduce(last) { right, left in .node(left, right) }
    }
  }

  private func tile(of subtree: TreeShape.Subtree) -> TilePath {
    TilePath(.hashes(level: subtree.level), holding: subtree.first, in: size)
  }
}
