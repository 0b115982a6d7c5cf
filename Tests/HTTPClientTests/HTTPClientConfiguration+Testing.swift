import HTTPClient
import TestSupport

extension HTTPClientConfiguration {
  /// A configuration whose limits no test reaches unless it lowers them.
  static func testing(
    trustAnchors: TrustAnchors = .system, proxy: Proxy = .none, maximumConnections: Int = 4, maximumRequests: Int = 16,
    maximumHeadSize: Int = 32_768
  ) -> HTTPClientConfiguration {
    HTTPClientConfiguration(
      userAgent: "siwa-tests/1", trustAnchors: trustAnchors, proxy: proxy, connectTimeout: .seconds(300),
      maximumConnections: maximumConnections, maximumRequests: maximumRequests, maximumHeadSize: maximumHeadSize)
  }
}

extension ScriptedServer {
  nonisolated func url(_ path: String = "/") -> HTTPClientURL {
    guard let url = HTTPClientURL("http://127.0.0.1:\(port)\(path)") else { preconditionFailure("no address: \(path)") }
    return url
  }
}
