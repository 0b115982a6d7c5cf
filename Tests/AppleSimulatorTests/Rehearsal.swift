import AccountEvents
import AppleSimulator
import EventLoop
import Foundation
import HTTPClient
import Testing

/// A simulated Apple on loopback, and a client that asks it.
@Loop
struct Rehearsal {
  let apple: SimulatedApple
  let server: SimulatedAppleServer
  private let client = HTTPClient(
    HTTPClientConfiguration(
      userAgent: "tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 4,
      maximumRequests: 16))

  /// Runs `body` while the server runs.
  static func run(
    clock: @escaping @Sendable () -> Timestamp = { .now }, _ body: @Loop (_ rehearsal: Rehearsal) async throws -> Void
  ) async throws {
    let apple = try SimulatedApple.forTests(clock: clock)
    let server = try SimulatedAppleServer(apple, port: 0, tls: nil)
    try await withThrowingTaskGroup { group in
      group.addTask { await server.run() }
      defer { group.cancelAll() }
      try await body(Rehearsal(apple: apple, server: server))
    }
  }

  func get(_ path: String, within deadline: Duration = .seconds(300)) async throws -> HTTPClientResponse {
    try await client.send(.get(try url(path), within: deadline, maximumBodySize: 20_000_000))
  }

  func post(_ json: String, to path: String) async throws -> HTTPClientResponse {
    try await client.send(
      .post(
        [UInt8](json.utf8), to: try url(path), headers: [], isRepeatable: true, within: .seconds(300),
        maximumBodySize: 65_536))
  }

  func post(
    form: [(name: String, value: String)], to path: String, headers: [(name: String, value: String)] = []
  ) async throws -> HTTPClientResponse {
    try await client.send(
      .post(
        form: form, to: try url(path), headers: headers, isRepeatable: true, within: .seconds(300),
        maximumBodySize: 65_536))
  }

  private func url(_ path: String) throws -> HTTPClientURL {
    try #require(HTTPClientURL("http://\(server.address)\(path)"))
  }
}

extension SimulatedApple {
  static func forTests(clock: @escaping @Sendable () -> Timestamp = { .now }) throws -> SimulatedApple {
    SimulatedApple(
      ring: try ring.get(), issuer: AppleNotification.appleIssuer, trustAnchors: .system, clock: clock)
  }

  /// Made once: a key takes longer than most tests.
  private nonisolated static let ring = Result { try KeyRing(generating: 3) }
}

func jsonObject(_ bytes: [UInt8]) throws -> [String: Any] {
  try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
}
