import EventLoop
import Foundation
import TestSupport
import Testing

/// A block of a stream of server-sent events.
struct StreamBlock {
  var event = ""
  var id: String?
  var text = ""

  /// The data, which is an object in JSON.
  var data: [String: Any] { get throws { try text.object } }
}

/// A reader of `GET /v1/events`, over TLS.
@Loop
final class EventReader {
  private let client: TLSClient
  /// All whole blocks so far, as they came.
  private(set) var said = ""

  /// Asks, and reads as far as the end of the head. HTTP/1.0 has no chunks: what comes is the stream itself.
  init(
    _ running: RunningAccounts, _ token: String, after last: String? = nil, from beginning: String? = nil
  ) async throws {
    let query = beginning.map { "?from=\($0)" } ?? ""
    client = try await Self.ask(running, token, "GET /v1/events\(query) HTTP/1.0", after: last)
    let end = Array("\r\n\r\n".utf8)
    let head = String(decoding: try await client.read { $0.firstRange(of: end) != nil }, as: UTF8.self)
    let parts = head.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
    try #require(parts.count == 2 && head.hasPrefix("HTTP/1.1 200 "), "\(head)")
    for field in ["Content-Type: text/event-stream", "Cache-Control: no-store"] {
      #expect(parts[0].contains("\r\n\(field)\r\n") || parts[0].hasSuffix("\r\n\(field)"), "\(head)")
    }
    client.received = Array(parts[1].utf8) + client.received
  }

  /// The whole answer to somebody who gets no stream.
  static func answer(
    _ running: RunningAccounts, _ token: String, method: String = "GET", after last: String?
  ) async throws -> String {
    try await ask(running, token, "\(method) /v1/events HTTP/1.1", after: last).readToEnd()
  }

  private static func ask(
    _ running: RunningAccounts, _ token: String, _ line: String, after last: String?
  ) async throws -> TLSClient {
    // The server waits ten seconds for a handshake, and a machine full of other tests may hold this one up for longer.
    var attempts = 5
    while true {
      attempts -= 1
      do {
        let client = try TLSClient(running.address)
        try await client.handshake()
        try await client.send(
          "\(line)\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\nAccept: text/event-stream\r\n"
            + "Connection: close\r\n\(last.map { "Last-Event-ID: \($0)\r\n" } ?? "")\r\n")
        return client
      } catch let failure as ClientFailure {
        guard attempts > 0 else { throw failure }
      }
    }
  }

  /// The next block, whatever it is; nil at the end.
  private func block() async throws -> StreamBlock? {
    let mark = Array("\n\n".utf8)
    while true {
      if let end = client.received.firstRange(of: mark) {
        let text = String(decoding: client.take(end.upperBound), as: UTF8.self)
        said += text
        var block = StreamBlock()
        for line in text.split(separator: "\n") {
          if line.hasPrefix("event: ") { block.event = String(line.dropFirst(7)) }
          if line.hasPrefix("id: ") { block.id = String(line.dropFirst(4)) }
          if line.hasPrefix("data: ") { block.text = String(line.dropFirst(6)) }
        }
        return block
      }
      do {
        guard try await client.receive() else { return nil }
      } catch is ClientFailure {
        return nil  // the program was killed
      }
    }
  }

  /// The next block.
  func next() async throws -> StreamBlock { try #require(try await block()) }

  /// The next event; nil at the end.
  func eventIfAny() async throws -> StreamBlock? {
    while let block = try await block() { if !block.event.isEmpty { return block } }
    return nil
  }

  /// The next event.
  func event() async throws -> StreamBlock { try #require(try await eventIfAny()) }

  /// Reads to the end. Whether the server said goodbye.
  func isEndedInOrder() async throws -> Bool {
    while try await block() != nil {}
    return client.hasEnded && client.received.isEmpty
  }

  /// Hangs up.
  func close() { client.raw.close() }
}
