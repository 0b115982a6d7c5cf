import AccountServices
import EventLoop
import Glibc
import HTTPClient
import TransparencyLog

/// The place of a log as the command line names it: a directory, a bundle, or the address that it is published under.
@Loop
struct LogPlace {
  let source: any LogSource
  private let client: HTTPClient?

  /// Opens it. A certificate in the file `trustAnchor` is believed of the log's server, too.
  init(_ place: String, trustAnchor: String?) throws {
    if place.contains("://") {
      guard let url = HTTPClientURL(place) else {
        throw LogError(.malformed, place, "expected an https address, or http on loopback")
      }
      let client = HTTPClient(
        HTTPClientConfiguration(
          userAgent: "siwa-audit", trustAnchors: trustAnchor.map { .systemAnd(file: $0) } ?? .system,
          proxy: .environment, connectTimeout: .seconds(10), maximumConnections: 2, maximumRequests: 2))
      (source, self.client) = (LogWebsite(url, client), client)
      return
    }
    var status = stat()
    guard unsafe stat(place, &status) == 0 else { throw LogError(.failed, place, "\(SystemError.current)") }
    client = nil
    if status.st_mode & S_IFMT == S_IFDIR { source = LogDirectory(place) } else { source = try LogArchive(place) }
  }

  /// Ends what was opened.
  func close() { client?.close() }
}
