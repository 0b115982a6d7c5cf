/// A proof that a tree begins with all entries of an older one, in the same order (RFC 9162 §2.1.4).
package struct ConsistencyProof: Sendable, Hashable {
  /// The hashes in the order of RFC 9162.
  package let hashes: [MerkleHash]

  /// A proof of these hashes, which proves nothing before it is verified.
  package init(_ hashes: [MerkleHash]) { self.hashes = hashes }

  /// Whether it proves that `tree` begins with `older`. Where both have one size, or `older` is empty, it has no hashes.
  package func proves(_ tree: TreeHead, continues older: TreeHead) -> Bool {
    guard older.size > 0 else { return hashes.isEmpty && older == .empty }
    guard older.size < tree.size else { return hashes.isEmpty && older == tree }
    // RFC 9162 §2.1.4.2, with its names.
    let isComplete = older.size.nonzeroBitCount == 1
    var path = (isComplete ? [older.root] : []) + hashes
    guard !hashes.isEmpty else { return false }
    var (fn, sn) = (older.size - 1, tree.size - 1)
    while fn & 1 == 1 { (fn, sn) = (fn >> 1, sn >> 1) }
    let start = path.removeFirst()
    var (fr, sr) = (start, start)
    for c in path {
      if sn == 0 { return false }
      if fn & 1 == 1 || fn == sn {
        (fr, sr) = (.node(c, fr), .node(c, sr))
        while fn & 1 == 0, fn != 0 { (fn, sn) = (fn >> 1, sn >> 1) }
      } else {
        sr = .node(sr, c)
      }
      (fn, sn) = (fn >> 1, sn >> 1)
    }
    return sn == 0 && fr == older.root && sr == tree.root
  }
}
