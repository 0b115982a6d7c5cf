import EventLoop
package import HTTPClient
package import TransparencyLog

/// A log on a web server, below the address that C2SP's tlog-tiles calls its prefix.
package struct LogWebsite: LogSource {
  /// How often something is asked for before it counts as not to be had.
  private static let attempts = 3
  /// The pause before it is asked for again.
  private static let pause = Duration.seconds(1)
  /// How long an answer may take.
  private static let deadline = Duration.seconds(60)

  private let prefix: String
  private let client: HTTPClient

  /// The log below an address, with or without a slash at its end.
  package init(_ prefix: HTTPClientURL, _ client: HTTPClient) {
    self.prefix = prefix.text.hasSuffix("/") ? String(prefix.text.dropLast()) : prefix.text
    self.client = client
  }

  private enum Answer {
    case bytes([UInt8])
    case missing
    /// It may be there, and cannot be had at the moment.
    case later(LogError)
  }

  /// The bytes of a resource; nil where the server answers 404 or 410.
  package func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]? {
    var attempt = 1
    while true {
      switch try await ask(path, limit) {
      case .bytes(let bytes): return bytes
      case .missing: return nil
      case .later(let error) where attempt == Self.attempts: throw error
      case .later: attempt += 1
      }
      do { try await Loop.sleep(for: Self.pause) } catch { throw LogError(.failed, path, "cancelled") }
    }
  }

  private func ask(_ path: String, _ limit: Int) async throws(LogError) -> Answer {
    guard let url = HTTPClientURL("\(prefix)/\(path)") else { throw LogError(.failed, path, "no address to ask") }
    let response: HTTPClientResponse
    do throws(HTTPClientError) {
      response = try await client.send(.get(url, within: Self.deadline, maximumBodySize: limit))
    } catch {
      if error.code == .tooLarge { throw LogError(.tooLarge, path, "more than \(limit) bytes") }
      guard error.isRetriable else { throw LogError(.failed, path, "\(error)") }
      return .later(LogError(.failed, path, "\(error)"))
    }
    switch response.status {
    case 200 where response.header("Content-Encoding") == nil: return .bytes(response.body)
    case 200: throw LogError(.failed, path, "the server has compressed what was to come as it is")
    case 404, 410: return .missing
    case 429, 500...599: return .later(LogError(.failed, path, "the server answers \(response.status)"))
    default: throw LogError(.failed, path, "the server answers \(response.status)")
    }
  }
}
