/// A proof that a tree has a certain entry at a certain place (RFC 9162 §2.1.3).
package struct InclusionProof: Sendable, Hashable {
  /// The hashes from the entry's sibling up to the root's child.
  package let hashes: [MerkleHash]

  /// A proof of these hashes, which proves nothing before it is verified.
  package init(_ hashes: [MerkleHash]) { self.hashes = hashes }

  /// Whether it proves that the tree has an entry of the hash `leaf` at `index`, counted from zero.
  package func proves(_ leaf: MerkleHash, at index: UInt64, in tree: TreeHead) -> Bool {
    // RFC 9162 §2.1.3.2, with its names.
    guard index < tree.size else { return false }
    var (fn, sn, r) = (index, tree.size - 1, leaf)
    for p in hashes {
      if sn == 0 { return false }
      if fn & 1 == 1 || fn == sn {
        r = .node(p, r)
        while fn & 1 == 0, fn != 0 { (fn, sn) = (fn >> 1, sn >> 1) }
      } else {
        r = .node(r, p)
      }
      (fn, sn) = (fn >> 1, sn >> 1)
    }
    return sn == 0 && r == tree.root
  }
}
