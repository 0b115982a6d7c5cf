extension LogView {
  /// The files that the tree consists of: bundles of entries, then tiles from the lowest level up, each kind's from the
  /// left to the right.
  package var files: some Sequence<TilePath> {
    let size = head.size
    return TilePath.kinds.lazy.flatMap { kind in
      let (full, width) = (TilePath.count(kind, in: size) / UInt64(TilePath.fullWidth), UInt64(TilePath.fullWidth))
      return (0..<full + (TilePath.edge(kind, of: size) == nil ? 0 : 1)).lazy.map {
        TilePath(kind, holding: $0 * width, in: size)
      }
    }
  }

  /// The bytes of such a file, of this tree alone: where a fuller file has taken its place, what that begins with.
  ///
  /// Throws `.missing` for one that is not there, and `.damaged` for one that has fewer items. Nothing is proven of them.
  package func bytes(of path: TilePath) async throws(LogError) -> [UInt8] {
    switch path.kind {
    case .hashes:
      guard let read = try await source.read(path, limit: LogPath.maximumTileSize) else { throw .missing(path) }
      let size = path.width * MerkleHash.byteCount
      guard read.bytes.count >= size else { throw LogError(.damaged, read.path.text, "not \(path.width) hashes") }
      return Array(read.bytes.prefix(size))
    case .entries:
      guard let read = try await source.read(path, limit: EntryBundle.maximumByteCount) else { throw .missing(path) }
      let bundle = EntryBundle(read.bytes)
      guard bundle.entries.count >= path.width else {
        throw LogError(.damaged, read.path.text, "not \(path.width) entries")
      }
      return Array(read.bytes[..<bundle.entries[path.width - 1].upperBound])
    }
  }
}
