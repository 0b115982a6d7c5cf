/// A log's state in the writer's memory: the right edge of its tree, and the files that are not durable yet.
struct GrowingLog: Sendable, Equatable {
  /// A tile or a bundle, as it is to stand in the log.
  struct File: Sendable, Equatable {
    let path: TilePath
    let bytes: [UInt8]
  }

  private(set) var edge = TreeEdge()
  /// The entries of the bundle that is not full yet.
  private var bundle: [UInt8] = []
  /// The files that became full since everything was last durable.
  private var full: [File] = []
  /// The number of bytes of them, and of the bundle that is not full yet.
  var byteCount: Int { fullByteCount + bundle.count }
  private var fullByteCount = 0
  /// The size at which everything was last durable.
  private var durableSize: UInt64 = 0

  /// A log without entries.
  init() {}

  /// A log of that edge, all of which is durable; `bundle` has the entries of the partial bundle.
  init(_ edge: TreeEdge, bundle: [UInt8]) { (self.edge, self.bundle, durableSize) = (edge, bundle, edge.size) }

  /// Appends an entry of at most `EntryBundle.maximumEntrySize` bytes.
  mutating func append(_ entry: [UInt8]) {
    EntryBundle.append(entry, to: &bundle)
    edge.append(.leaf(entry))
    while let tile = edge.takeFullTile() {
      if tile.path.kind == .hashes(level: 0) {
        var bytes: [UInt8] = []
        swap(&bytes, &bundle)
        append(File(path: TilePath(.entries, tile.path.index), bytes: bytes))
      }
      append(File(path: tile.path, bytes: tile.hashes.tile))
    }
  }

  private mutating func append(_ file: File) {
    full.append(file)
    fullByteCount += file.bytes.count
  }

  /// The files that have to be written before there can be a checkpoint of this size.
  ///
  /// None of them is one that an earlier checkpoint needs, so no reader ever finds half of one: a partial file is among
  /// them only where it has items that the durable one has not, and then its name is another.
  var files: [File] {
    full
      + TilePath.kinds.compactMap { kind in
        guard let path = TilePath.edge(kind, of: edge.size),
          TilePath.count(kind, in: edge.size) > TilePath.count(kind, in: durableSize)
        else { return nil }
        return File(path: path, bytes: kind == .entries ? bundle : edge.levels[kind.level].tile)
      }
  }

  /// Records that all files are durable.
  mutating func settle() {
    full = []
    fullByteCount = 0
    durableSize = edge.size
  }
}
