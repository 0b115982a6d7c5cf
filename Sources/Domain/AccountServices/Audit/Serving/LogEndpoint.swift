package import EventLoop
package import HTTPServer
package import Telemetry
package import TransparencyLog

/// Serves a log as C2SP's tlog-tiles asks: checkpoint, tiles and entry bundles, as files that never change but for the
/// first.
///
/// Only what the published checkpoint covers is served: what lies behind it may be written anew after a crash, and whoever
/// has cached it for good would have another log.
@Loop
package final class LogEndpoint {
  /// Beside what tlog-tiles names: the history of the log's keys, and the last checkpoint that all witnesses have cosigned.
  private static let notes = [LogPath.checkpoint, LogPath.keys, LogPath.witnessed]

  /// What its server allows: requests of readers are small, and a tile takes a moment on a slow line.
  package nonisolated static let bounds = EndpointServer.Bounds(
    head: 8192, body: 1024, connections: 256, connectionsPerAddress: 64, request: .seconds(60))

  private let source: any LogSource
  private let metrics: AuditMetrics
  private let logger: Logger
  /// The size of the last checkpoint that was seen here.
  private var size: UInt64 = 0

  /// An endpoint over a log.
  package init(_ source: any LogSource, metrics: AuditMetrics, logger: Logger) {
    (self.source, self.metrics, self.logger) = (source, metrics, logger)
  }

  /// Answers one request.
  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    let response = await answer(request)
    metrics.countAnswer(response.status)
    return response
  }

  private func answer(_ request: HTTPRequest) async -> HTTPResponse {
    guard request.hasMethod("GET") || request.hasMethod("HEAD") else {
      return HTTPResponse(status: 405, headers: [("Allow", "GET, HEAD")])
    }
    let path = request.path
    guard path.hasPrefix("/") else { return .notThere }
    return await answer(String(path.dropFirst()))
  }

  /// Answers a request for a resource by its path in the log.
  private func answer(_ path: String) async -> HTTPResponse {
    do throws(LogError) {
      if Self.notes.contains(path) { return try await note(path) }
      // What is no path of a tile in its only spelling names no file.
      guard let tile = TilePath(path), try await isPublished(tile) else { return .notThere }
      return try await self.tile(tile)
    } catch {
      logger.error("the audit log cannot be read from its directory", ["cause": .describing(error)])
      return HTTPResponse(
        status: 503, headers: [("Retry-After", "5"), ("Cache-Control", "no-store")])
    }
  }

  private func note(_ path: String) async throws(LogError) -> HTTPResponse {
    guard let bytes = try await source.read(path, limit: SignedNote.maximumByteCount) else { return .notThere }
    return HTTPResponse(
      status: 200, headers: [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-cache")],
      body: .bytes(bytes))
  }

  private func tile(_ path: TilePath) async throws(LogError) -> HTTPResponse {
    let limit = path.kind == .entries ? EntryBundle.maximumByteCount : LogPath.maximumTileSize
    // A partial one is gone where the full one has taken its place: whoever asks falls back to that.
    guard let bytes = try await source.read(path.text, limit: limit) else { return .notThere }
    return HTTPResponse(
      status: 200,
      headers: [
        ("Content-Type", "application/octet-stream"), ("Cache-Control", "public, max-age=31536000, immutable"),
      ], body: .bytes(bytes))
  }

  /// Whether the published checkpoint covers all that a file holds.
  private func isPublished(_ tile: TilePath) async throws(LogError) -> Bool {
    if tile.lies(within: size) { return true }
    guard let bytes = try await source.read(LogPath.checkpoint, limit: SignedNote.maximumByteCount) else {
      return false
    }
    size = max(size, try Checkpoint(SignedNote(bytes).text).size)
    return tile.lies(within: size)
  }
}

extension HTTPResponse {
  /// There may be something later.
  fileprivate static var notThere: HTTPResponse {
    var response = text("There is no such part of the log.\n", status: 404)
    response.headers.append(("Cache-Control", "no-store"))
    return response
  }
}

extension TilePath {
  /// Whether a log of `size` entries has all items of the file.
  fileprivate func lies(within size: UInt64) -> Bool {
    let level: Int
    switch kind {
    case .entries: level = 0
    case .hashes(let number): level = number
    }
    let count = level < 8 ? size >> UInt64(8 * level) : 0
    let (first, overflow) = index.multipliedReportingOverflow(by: UInt64(Self.fullWidth))
    return !overflow && first <= count && count - first >= UInt64(width)
  }
}
