/// Recovery of a log when a writer opens its directory: from the last checkpoint that was published or may have been
/// signed.
enum LogRecovery {
  /// The checkpoint to go on from. Nil for a directory in which no log was begun.
  ///
  /// - Parameters:
  ///   - published: The checkpoint that readers see.
  ///   - announced: The checkpoint that was durable and about to be signed. A signature may exist, and a witness may have
  ///     seen it.
  ///   - hasTiles: Whether there are files of a log.
  ///   - opening: Whether an announcement has to be there, and not be behind what is published. A writer announces first,
  ///     so anything else is files that were lost or rolled back.
  static func base(
    of origin: String, published: Checkpoint?, announced: Checkpoint?, hasTiles: Bool, _ opening: LogWriter.Opening
  ) throws(LogError) -> Checkpoint? {
    for (checkpoint, path) in [(published, LogPath.checkpoint), (announced, LogWriter.announcementPath)] {
      guard let checkpoint, !checkpoint.isOf(origin) else { continue }
      throw LogError(.wrongOrigin, path, "the directory holds a log of another origin than \(origin)")
    }
    guard let published else {
      if announced == nil, hasTiles {
        throw LogError(.damaged, LogPath.checkpoint, "there are tiles, but no checkpoint that says what is a log's")
      }
      return announced
    }
    guard let announced, announced.size >= published.size else {
      switch opening {
      case .strict:
        let found = announced.map { "is of \($0.size) entries" } ?? "is not there"
        throw LogError(
          .damaged, LogWriter.announcementPath,
          "the file \(found), and the published checkpoint is of \(published.size): files were lost or rolled back")
      case .fromPublished: return published
      }
    }
    guard published.size < announced.size || published.root == announced.root else {
      throw LogError(
        .conflict, LogWriter.announcementPath, "another root than that of the published checkpoint of the same size")
    }
    return announced
  }

  /// The log of that head, from the entries at its right edge and the tiles above, all of which are compared with the
  /// root. Throws `.damaged` or `.missing` with the file that does not fit.
  static func restore(_ head: TreeHead, from directory: LogDirectory) throws(LogError) -> GrowingLog {
    let edge = try TreeEdge(size: head.size) { path throws(LogError) in try hashes(of: path, in: directory) }
    guard let path = TilePath.edge(.entries, of: head.size) else {
      guard edge.root == head.root else { throw try culprit(of: edge, in: directory) ?? .wrongRoot }
      return GrowingLog(edge, bundle: [])
    }
    let bundle = EntryBundle(try directory.file(path, limit: EntryBundle.maximumByteCount))
    guard bundle.isWellFormed, bundle.entries.count == path.width else {
      throw LogError(.damaged, path.text, "not \(path.width) entries")
    }
    let leaves = bundle.hashes
    let entryError = LogError(.damaged, path.text, "the entries are not those of the hashes in their tile")
    guard edge.root == head.root else {
      if leaves == edge.levels[0] { throw try culprit(of: edge, in: directory) ?? .wrongRoot }
      if edge.replacing(leaves: leaves).root == head.root {
        let tile = TilePath(.hashes(level: 0), path.index, width: path.width)
        throw LogError(.damaged, tile.text, "the hashes are not those of the entries")
      }
      throw try culprit(of: edge, in: directory) ?? entryError
    }
    guard leaves == edge.levels[0] else { throw entryError }
    return GrowingLog(edge, bundle: bundle.bytes)
  }

  /// Compares the files that became full since a tree of `older` entries with what stands above them, and always the last
  /// one of each kind. With the edge, which `restore` compares, that is all that was written since.
  static func checkFullFiles(of head: TreeHead, since older: UInt64, in directory: LogDirectory) throws(LogError) {
    let width = UInt64(TilePath.fullWidth)
    for level in TilePath.levels {
      let kind = TilePath.Kind.hashes(level: level)
      let end = TilePath.count(kind, in: head.size) / width
      for index in min(TilePath.count(kind, in: older) / width, max(end, 1) - 1)..<end {
        let tile = TilePath(kind, index)
        let hashes = try hashes(of: tile, in: directory)
        let above = TilePath(.hashes(level: level + 1), holding: index, in: head.size)
        guard try self.hashes(of: above, in: directory)[Int(index % width)] == .root(over: hashes) else {
          throw LogError(.damaged, tile.text, "the hashes are not those of the tile above")
        }
        guard level == 0 else { continue }
        let path = TilePath(.entries, index)
        let bundle = EntryBundle(try directory.file(path, limit: EntryBundle.maximumByteCount))
        guard bundle.isWellFormed, bundle.hashes == hashes else {
          throw LogError(.damaged, path.text, "the entries are not those of the hashes in their tile")
        }
      }
    }
  }

  /// Throws unless the log in the directory, whose tree is `head`, begins with an older tree.
  static func check(_ head: TreeHead, continues older: Checkpoint, in directory: LogDirectory) throws(LogError) {
    let plan = ProofPlan(size: head.size, ranges: [0..<older.size])
    var tiles: [TilePath: [MerkleHash]] = [:]
    for path in plan.tiles { tiles[path] = try hashes(of: path, in: directory) }
    guard plan.hashes(from: tiles)[0] == older.root else {
      throw LogError(.damaged, LogPath.checkpoint, "the tiles do not begin with those of a checkpoint of \(older.size)")
    }
  }

  /// The tile at the edge that does not fit those below it; nil where all do.
  private static func culprit(of edge: TreeEdge, in directory: LogDirectory) throws(LogError) -> LogError? {
    for level in TilePath.levels.dropFirst() {
      guard let path = TilePath.edge(.hashes(level: level), of: edge.size) else { continue }
      for (place, hash) in edge.levels[level].enumerated() {
        let item = path.index * UInt64(TilePath.fullWidth) + UInt64(place)
        let below = TilePath(.hashes(level: level - 1), item)
        guard .root(over: try hashes(of: below, in: directory)) != hash else { continue }
        return LogError(.damaged, path.text, "hash \(place) is not that of \(below)")
      }
    }
    return nil
  }

  private static func hashes(of path: TilePath, in directory: LogDirectory) throws(LogError) -> [MerkleHash] {
    try LogError.checking(path, directory.file(path, limit: LogPath.maximumTileSize), for: path)
  }
}

extension LogError {
  fileprivate static let wrongRoot = LogError(
    .damaged, LogPath.checkpoint, "entries and tiles come to another root")
}

extension LogDirectory {
  /// A tile or a bundle that has to be there.
  fileprivate func file(_ path: TilePath, limit: Int) throws(LogError) -> [UInt8] {
    do throws(LogError) {
      guard let bytes = try contents(of: path.text, limit: limit) else { throw LogError.missing(path) }
      return bytes
    } catch {
      throw error.code == .tooLarge ? LogError(.damaged, path.text, error.detail) : error
    }
  }
}
