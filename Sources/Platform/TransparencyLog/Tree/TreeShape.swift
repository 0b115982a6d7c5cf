/// Which subtrees of a Merkle tree a proof consists of (RFC 6962 §2.1), from the tree's size alone.
///
/// Nothing recurses: sizes come from outside, and loops halve them.
enum TreeShape {
  /// A complete subtree: the entries from `index << height` on, `1 << height` of them.
  struct Subtree: Equatable {
    let height: Int
    let index: UInt64

    /// The level of tiles that has it, or hashes that it follows from.
    var level: Int { height / 8 }
    /// The number of hashes of that level that it follows from.
    var count: Int { 1 << (height % 8) }
    /// The first of those hashes, by its number in the level.
    var first: UInt64 { index << UInt64(height % 8) }
  }

  /// The ranges of entries whose hashes prove that the tree has an entry: from its sibling up to the root's child.
  static func inclusion(of index: UInt64, in size: UInt64) -> [Range<UInt64>] {
    precondition(index < size)
    var (whole, siblings) = (0..<size, [Range<UInt64>]())
    while whole.upperBound - whole.lowerBound > 1 {
      let (left, right) = halves(of: whole)
      (whole, siblings) = left.contains(index) ? (left, siblings + [right]) : (right, siblings + [left])
    }
    return siblings.reversed()
  }

  /// The ranges of entries whose hashes prove that a tree begins with the tree of `old` entries, in the proof's order.
  static func consistency(from old: UInt64, to size: UInt64) -> [Range<UInt64>] {
    precondition(0 < old && old < size)
    var (whole, siblings) = (0..<size, [Range<UInt64>]())
    while whole.upperBound != old {
      let (left, right) = halves(of: whole)
      (whole, siblings) = old <= left.upperBound ? (left, siblings + [right]) : (right, siblings + [left])
    }
    // The verifier knows what the old tree as a whole comes to.
    return (whole.lowerBound == 0 ? [] : [whole]) + siblings.reversed()
  }

  /// The complete subtrees that a range consists of, the largest first, as a node of a tree has them below it.
  static func subtrees(of range: Range<UInt64>) -> [Subtree] {
    var (first, subtrees) = (range.lowerBound, [Subtree]())
    while first < range.upperBound {
      let largest = 63 - (range.upperBound - first).leadingZeroBitCount
      let height = min(largest, first.trailingZeroBitCount)
      subtrees.append(Subtree(height: height, index: first >> UInt64(height)))
      first += 1 << UInt64(height)
    }
    return subtrees
  }

  /// The two subtrees below a node: the left one has the largest power of two of entries that is less than all.
  private static func halves(of whole: Range<UInt64>) -> (Range<UInt64>, Range<UInt64>) {
    let size = whole.upperBound - whole.lowerBound
    let middle = whole.lowerBound + 1 << UInt64(63 - (size - 1).leadingZeroBitCount)
    return (whole.lowerBound..<middle, middle..<whole.upperBound)
  }
}
