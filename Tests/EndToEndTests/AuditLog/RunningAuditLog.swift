import EventLoop
import Glibc
import HTTPClient
import TestSupport
import Testing
import TransparencyLog

/// The program `siwa-audit-log`, which has begun: it writes the log, or stands by.
@Loop
final class RunningAuditLog {
  let program: RunningProgram
  /// Where the log is served.
  let address: SocketAddress
  /// Where operators ask.
  let administration: Administration
  private let client = HTTPClient(
    HTTPClientConfiguration(
      userAgent: "tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 2,
      maximumRequests: 64))

  /// Waits until it has begun.
  init(_ program: RunningProgram) async throws {
    self.program = program
    address = try await program.address("listen.address", saidWith: "the audit log begins")
    administration = Administration(
      try await program.address("listen.administration", saidWith: "the audit log begins"))
  }

  /// The bytes of a resource of the log, as readers get them; nil where it is not there.
  func read(_ path: String) async throws -> [UInt8]? {
    let url = try #require(HTTPClientURL("http://\(address)/\(path)"))
    let response = try await client.send(.get(url, within: .seconds(300), maximumBodySize: 1 << 24))
    try #require([200, 404].contains(response.status))
    return response.status == 200 ? response.body : nil
  }

  /// The checkpoint that readers get; nil before the first.
  func checkpoint() async throws -> (checkpoint: Checkpoint, note: SignedNote)? {
    guard let bytes = try await read(LogPath.checkpoint) else { return nil }
    let note = try SignedNote(bytes)
    return (try Checkpoint(note.text), note)
  }

  /// Waits until readers get a checkpoint of so many entries.
  func untilPublished(_ size: Int, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    try await TestSupport.until(
      within: .seconds(300), { try await checkpoint()?.checkpoint.size ?? 0 >= UInt64(size) },
      sourceLocation: sourceLocation)
  }

  /// Waits until it says that it is ready, or that it is not.
  func untilReadiness(is isReady: Bool, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    try await TestSupport.until(
      { try await administration.get("/readyz").status == (isReady ? 200 : 503) }, sourceLocation: sourceLocation)
  }

  /// Tells it to end, and waits for that.
  func end() async throws -> RunningProgram.End {
    program.signal(SIGTERM)
    return try await program.untilEnd()
  }
}
