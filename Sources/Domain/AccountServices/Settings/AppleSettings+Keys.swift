package import AppleID
package import EventLoop
import HTTPClient

extension AppleKeysEndpoint {
  /// Apple's keys endpoint as the configuration has it.
  @Loop
  package init(_ settings: AppleSettings, userAgent: String) {
    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: userAgent, trustAnchors: settings.trustedCA.map { .systemAnd(file: $0) } ?? .system,
        proxy: settings.proxy == .environment ? .environment : .none, connectTimeout: settings.deadline,
        maximumConnections: 2, maximumRequests: 4))
    self.init(settings.keysURL, client: client, deadline: settings.deadline)
  }
}

extension AppleKeysCache {
  /// The file that the configuration names.
  package init(_ settings: AppleSettings) {
    self.init(path: settings.keysFile, source: settings.keysURL.text, thread: BlockingThread(named: "apple-keys"))
  }
}
