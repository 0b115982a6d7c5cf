import EventLoop
import Foundation
import HTTPClient
import TestSupport
import Testing

/// The program `siwa-ingress`, listening.
@Loop
final class RunningIngress {
  let program: RunningProgram
  /// Where notifications are taken.
  let address: SocketAddress
  private let administration: SocketAddress
  private let client: HTTPClient

  /// Waits until it says where it listens.
  init(_ program: RunningProgram, _ client: HTTPClient) async throws {
    let line = try await program.line(with: "\"message\":\"ingress listens\"")
    let words = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    func read(_ name: String) throws -> SocketAddress {
      let text = try #require(words[name] as? String)
      return try #require(SocketAddress(text))
    }
    (address, administration) = (try read("listen.address"), try read("listen.administration"))
    (self.program, self.client) = (program, client)
  }

  /// The URL that Apple was given.
  var url: HTTPClientURL {
    get throws { try #require(HTTPClientURL("https://\(address)\(Stage.path)")) }
  }

  /// Delivers a notification.
  func post(_ body: [UInt8]) async throws -> HTTPClientResponse {
    try await client.send(
      .post(body, to: try url, headers: [], isRepeatable: true, within: .seconds(300), maximumBodySize: 4096))
  }

  /// Asks as operators do.
  func get(_ path: String) async throws -> (status: Int, text: String) {
    let url = try #require(HTTPClientURL("http://\(administration)\(path)"))
    let response = try await client.send(.get(url, within: .seconds(300), maximumBodySize: 1 << 20))
    return (response.status, String(decoding: response.body, as: UTF8.self))
  }

  /// Waits until all of its parts are ready.
  func untilReady() async throws {
    try await until { try await get("/readyz").status == 200 }
  }

  /// Tells it to end, and waits for that.
  func end() async throws -> RunningProgram.End {
    program.signal(SIGTERM)
    return try await program.untilEnd()
  }
}
