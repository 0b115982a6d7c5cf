/// The head of a Merkle tree: its size and its root.
package struct TreeHead: Sendable, Hashable {
  /// The tree without entries.
  package static let empty = TreeHead(size: 0, root: .empty)

  /// The number of entries.
  package let size: UInt64
  /// The hash over all of them.
  package let root: MerkleHash

  /// The head of a tree.
  package init(size: UInt64, root: MerkleHash) { (self.size, self.root) = (size, root) }
}
