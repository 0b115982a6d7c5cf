/// A place that a log is read from: a directory, a web server, a bundle.
package protocol LogSource: Sendable {
  /// The bytes of a resource, such as `checkpoint` or `tile/0/000`; nil where it is not there.
  ///
  /// Throws `.tooLarge` for more than `limit` bytes, before they are read, and `.failed` where it cannot be known whether
  /// the resource is there.
  func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]?
}

extension LogSource {
  /// A tile or a bundle that has the items of `path`, and perhaps more: the full one, where the partial one is gone.
  func read(_ path: TilePath, limit: Int) async throws(LogError) -> (path: TilePath, bytes: [UInt8])? {
    if let bytes = try await read(path.text, limit: limit) { return (path, bytes) }
    guard !path.isFull, let bytes = try await read(path.full.text, limit: limit) else { return nil }
    return (path.full, bytes)
  }
}

/// The names of resources of a log that are no tiles.
package enum LogPath {
  /// The signed checkpoint.
  package static let checkpoint = "checkpoint"
  /// The last checkpoint that all witnesses of the log have cosigned, where it has some.
  package static let witnessed = "checkpoint.witnessed"
  /// The history of the log's keys, where there is one.
  package static let keys = "keys"
  /// The most bytes of a tile.
  package static let maximumTileSize = TilePath.fullWidth * MerkleHash.byteCount
}
