import AccountEvents
import AccountServices
import EventLoop
import Glibc
import LogSupport
import Telemetry
import TestSupport
import Testing
import TransparencyLog

/// What readers of the log get over a real socket: what the published checkpoint covers, and nothing else of its directory.
@Loop @Suite(.timeLimit(.minutes(30))) struct LogEndpointTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog
  private let registry = MetricsRegistry()

  init() throws { log = try SampleLog(in: files.path + "/log") }

  /// Serves the log while `body` asks, with requests as they are written.
  private func serve(_ body: @Loop (_ ask: @Loop (String, String) async throws -> RawAnswer) async throws -> Void)
    async throws
  {
    let logger = CapturedLog().logger()
    let disk = LogDisk(log.path, thread: BlockingThread(named: "log-readers"))
    let endpoint = LogEndpoint(disk, metrics: AuditMetrics(registry, witnesses: []), logger: logger)
    let server = try EndpointServer(
      .loopback(port: 0), tls: nil, LogEndpoint.bounds, registry: registry, logger: logger, now: { .now },
      handler: { request in await endpoint.respond(to: request) })
    let running = Task(executorPreference: Loop.executor) { await server.run() }
    let result: Result<Void, any Error>
    do {
      let client = try RawClient(server.address)
      try await body { method, path in
        try await client.send("\(method) /\(path) HTTP/1.1\r\nHost: log\r\n\r\n".utf8)
        return try await client.answer(toHead: method == "HEAD")
      }
      client.close()
      result = .success(())
    } catch { result = .failure(error) }
    await server.drain(within: .seconds(300))
    await running.value
    try result.get()
  }

  private func text(of name: String) throws -> String { String(decoding: try log.bytes(of: name), as: UTF8.self) }

  private func answers(_ status: Int) -> String? {
    let name = #"siwa_audit_log_answers_total{status="\#(status)"} "#
    let text = String(decoding: registry.render(), as: UTF8.self)
    return text.split(separator: "\n").first { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) }
  }

  @Test func tilesNeverChangeAndTheCheckpointIsAskedForAgain() async throws {
    try await log.write([300], sampleEntry)
    try await serve { ask in
      let checkpoint = try await ask("GET", "checkpoint")
      #expect(try checkpoint.status == 200 && checkpoint.body == text(of: "checkpoint"), "\(checkpoint)")
      #expect(checkpoint.field("Content-Type") == "text/plain; charset=utf-8", "\(checkpoint)")
      #expect(checkpoint.field("Cache-Control") == "no-cache", "\(checkpoint)")
      for path in [
        "tile/0/000", "tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/000", "tile/entries/001.p/44",
      ] {
        let tile = try await ask("GET", path)
        #expect(try tile.status == 200 && tile.body == text(of: path), "\(path): \(tile)")
        #expect(tile.field("Content-Type") == "application/octet-stream", "\(path): \(tile)")
        #expect(tile.field("Cache-Control") == "public, max-age=31536000, immutable", "\(path): \(tile)")
      }
      let head = try await ask("HEAD", "tile/0/000")
      #expect(head.status == 200 && head.field("Content-Length") == "8192", "\(head)")
      for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let refused = try await ask(method, "checkpoint")
        #expect(refused.status == 405 && refused.field("Allow") == "GET, HEAD", "\(method): \(refused)")
      }
    }
    #expect(answers(200) == "7" && answers(405) == "4")
  }

  @Test func nothingElseIsServed() async throws {
    try await log.write([300], sampleEntry)
    // Two hundred more are on the disk, and no checkpoint covers them.
    let writer = try log.writer()
    while writer.size < 512 { _ = try writer.append(sampleEntry(Int(writer.size))) }
    let flushed = try writer.flush()
    log.replace("index.sqlite", with: [1])
    _ = files.write("beside", "what is not the log's")
    let there = [".about-to-sign", "index.sqlite", "../beside", "tile/0/001", "tile/entries/001", "tile/1/000.p/2"]
    for path in there { #expect(unsafe access("\(log.path)/\(path)", F_OK) == 0, "\(path)") }
    try await serve { ask in
      let odd = [
        "", ".", "..", "/checkpoint", "checkpoint/", "checkpoint%00", "Checkpoint", "keys", "tile", "tile/", "tile/0",
        "tile/0/0", "tile/0/1", "tile/0/00", "tile/0/0000", "tile/0/+00", "tile/0/x000/000", "tile/0/000/",
        "tile/00/000", "tile/-1/000", "tile/64/000", "tile//0/000", "tile/./0/000", "tile/0/../0/000",
        "tile/0/%30%30%30", "tile/0/000.p",
        "tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/044", "tile/Entries/000",
        // Beyond what is published.
        "tile/0/001.p/45", "tile/1/000", "tile/2/000.p/1", "tile/0/999", "tile/0/x999/x999/x999/x999/x999/x999/999",
        // The full one has taken its place.
        "tile/0/000.p/255",
      ]
      for path in there + odd {
        let answer = try await ask("GET", path)
        #expect(answer.status == 404 && answer.field("Cache-Control") == "no-store", "\(path): \(answer)")
      }
      #expect(answers(404) == "\(there.count + odd.count)")
      try writer.publish(try await log.note(on: flushed))
      for path in ["tile/0/001", "tile/entries/001", "tile/1/000.p/2"] {
        #expect(try await ask("GET", path).status == 200, "\(path)")
      }
    }
  }

  @Test func whatCannotBeReadIsAskedForLater() async throws {
    try await log.write([300], sampleEntry)
    log.replace("checkpoint", with: [1])
    try await serve { ask in
      let answer = try await ask("GET", "tile/0/000")
      #expect(answer.status == 503 && answer.field("Retry-After") == "5", "\(answer)")
      #expect(answer.field("Cache-Control") == "no-store", "\(answer)")
    }
    #expect(answers(503) == "1")
  }
}
