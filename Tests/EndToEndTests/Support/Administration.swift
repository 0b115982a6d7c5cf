import EventLoop
import HTTPClient
import Testing

/// What operators are told by a program that runs: `/readyz` and `/metrics`.
@Loop
struct Administration {
  private let address: SocketAddress
  private let client = HTTPClient(
    HTTPClientConfiguration(
      userAgent: "tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 2,
      maximumRequests: 64))

  /// The one at an address.
  init(_ address: SocketAddress) { self.address = address }

  /// Asks for a page.
  func get(_ path: String) async throws -> (status: Int, text: String) {
    let url = try #require(HTTPClientURL("http://\(address)\(path)"))
    let response = try await client.send(.get(url, within: .seconds(300), maximumBodySize: 1 << 20))
    return (response.status, String(decoding: response.body, as: UTF8.self))
  }

  /// The metric of that name and those labels.
  func metric(_ name: String) async throws -> Double {
    let text = try await get("/metrics").text
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }, "\(text)")
    return try #require(line.split(separator: " ").last.flatMap { Double($0) })
  }
}
