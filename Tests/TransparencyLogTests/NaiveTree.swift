@testable import TransparencyLog

/// A Merkle tree just as RFC 6962 §2.1 defines it, recursively and slowly: what ours is held against.
struct NaiveTree {
  let entries: [[UInt8]]

  /// MTH(D[range]).
  func root(_ range: Range<Int>) -> MerkleHash {
    switch range.count {
    case 0: .empty
    case 1: .leaf(entries[range.lowerBound])
    default: .node(root(range.lowerBound..<middle(of: range)), root(middle(of: range)..<range.upperBound))
    }
  }

  func head(_ size: Int) -> TreeHead { TreeHead(size: UInt64(size), root: root(0..<size)) }

  /// PATH(index, D[range]).
  func path(_ index: Int, _ range: Range<Int>) -> [MerkleHash] {
    if range.count == 1 { return [] }
    let middle = middle(of: range)
    return index < middle
      ? path(index, range.lowerBound..<middle) + [root(middle..<range.upperBound)]
      : path(index, middle..<range.upperBound) + [root(range.lowerBound..<middle)]
  }

  /// SUBPROOF(old, D[range], isWhole), where `old` is where the old tree ends.
  func proof(_ old: Int, _ range: Range<Int>, _ isWhole: Bool = true) -> [MerkleHash] {
    if old == range.upperBound { return isWhole ? [] : [root(range)] }
    let middle = middle(of: range)
    return old <= middle
      ? proof(old, range.lowerBound..<middle, isWhole) + [root(middle..<range.upperBound)]
      : proof(old, middle..<range.upperBound, false) + [root(range.lowerBound..<middle)]
  }

  /// Behind the largest power of two that is less than all.
  private func middle(of range: Range<Int>) -> Int {
    var size = 1
    while size * 2 < range.count { size *= 2 }
    return range.lowerBound + size
  }
}
