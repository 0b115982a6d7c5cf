import EventLoop
import Foundation
import Glibc
import HTTPClient
import TestSupport
import Testing

/// A headless Chromium, steered by Debian's chromium-driver over WebDriver (W3C).
@Loop
final class Browser {
  /// Tests with it run where it is installed.
  nonisolated static let isThere = ConditionTrait.enabled("needs Debian's chromium and chromium-driver") {
    unsafe access("/usr/bin/chromium", X_OK) == 0 && access("/usr/bin/chromedriver", X_OK) == 0
  }

  private let origin: String
  private let session: String
  private let client: HTTPClient
  /// How an element is called in WebDriver's answers.
  private static let element = "element-6066-11e4-a52e-4f735466cecf"

  /// Runs `body` with a browser that takes any certificate for an authority's, then ends both.
  static func run(in folder: String, _ body: @Loop (Browser) async throws -> Void) async throws {
    let (driver, port) = try await startDriver()
    let client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 2,
        maximumRequests: 16))
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(try await Browser("http://127.0.0.1:\(port)", client, folder)))
    } catch { result = .failure(error) }
    // It ends the browser, too, and then itself.
    let shutdown = try #require(HTTPClientURL("http://127.0.0.1:\(port)/shutdown"))
    _ = try await client.send(.get(shutdown, within: .seconds(300), maximumBodySize: 65_536))
    await driver.kill()
    try result.get()
  }

  /// Starts the driver, which says on its standard output which port it got.
  ///
  /// It asks for a free port of IPv6, then takes the same one of IPv4, and ends where another program has that: it is
  /// started again.
  private static func startDriver() async throws -> (RunningProgram, port: String) {
    var attempts = 20
    while true {
      attempts -= 1
      let driver = try RunningProgram("/usr/bin/chromedriver", ["--port=0", "--log-level=SEVERE"])
      do {
        let line = try await driver.outputLine(with: "was started successfully on port")
        return (driver, try #require(line.split(whereSeparator: { !$0.isNumber }).last.map(String.init)))
      } catch {
        await driver.kill()
        guard attempts > 0, driver.output.contains("port not available") else { throw error }
      }
    }
  }

  private init(_ origin: String, _ client: HTTPClient, _ folder: String) async throws {
    (self.origin, self.client) = (origin, client)
    // On a busy machine it may take longer to start, and to run a script, than a person would wait.
    let patience = 300_000
    let options: [String: Any] = [
      "binary": "/usr/bin/chromium", "browserStartupTimeout": patience,
      // The tests may run as root, in a container: what is opened is our own.
      "args": [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=900,900",
        "--no-proxy-server", "--user-data-dir=\(folder)/browser",
      ],
    ]
    let capabilities: [String: Any] = [
      "acceptInsecureCerts": true, "goog:chromeOptions": options,
      "timeouts": ["script": patience, "pageLoad": patience],
    ]
    let answer = try await Self.post(
      client, "\(origin)/session", ["capabilities": ["alwaysMatch": capabilities]])
    session = try #require((answer as? [String: Any])?["sessionId"] as? String)
  }

  /// Opens a page, and waits until it is there.
  func open(_ url: String) async throws { try await post("url", ["url": url]) }

  /// Where it is.
  func url() async throws -> String { try #require(try await get("url") as? String) }

  /// All that the page says; nothing where it is being left.
  func text() async throws -> String {
    let script = "return document.body ? document.body.innerText : ''"
    return try #require(try await post("execute/sync", ["script": script, "args": [String]()]) as? String)
  }

  /// Whether there is such an element, by a CSS selector.
  func has(_ selector: String) async throws -> Bool {
    let found = try await post("elements", ["using": "css selector", "value": selector])
    return !(try #require(found as? [Any])).isEmpty
  }

  /// Types into a field.
  func type(_ text: String, into selector: String) async throws {
    try await post(selector, "value", ["text": text])
  }

  /// Clicks, and waits for the page that may come of it.
  func click(_ selector: String) async throws { try await post(selector, "click", [:]) }

  /// The value of a cookie, whether or not scripts may see it.
  func cookie(_ name: String) async throws -> String {
    let cookie = try await get("cookie/\(name)") as? [String: Any]
    return try #require(cookie?["value"] as? String)
  }

  /// Makes the window as large as this, in pixels.
  func resize(width: Int, height: Int) async throws {
    try await post("window/rect", ["width": width, "height": height])
  }

  /// What the page looks like, as PNG.
  func screenshot() async throws -> [UInt8] {
    let text = try #require(try await get("screenshot") as? String)
    return [UInt8](try #require(Data(base64Encoded: text)))
  }

  private func find(_ selector: String) async throws -> String {
    let found = try await post("element", ["using": "css selector", "value": selector])
    return try #require((found as? [String: String])?[Self.element])
  }

  /// Does something with an element, and finds it anew where the page has put another one in its place meanwhile.
  private func post(_ selector: String, _ action: String, _ words: [String: Any]) async throws {
    for _ in 0..<100 {
      let url = "\(origin)/session/\(session)/element/\(try await find(selector))/\(action)"
      let response = try await Self.response(client, url, words)
      if response.status == 404, String(decoding: response.body, as: UTF8.self).contains("stale element") { continue }
      _ = try Self.value(response, url)
      return
    }
    try #require(Bool(false), "\(selector) is replaced again and again")
  }

  private func get(_ path: String) async throws -> Any {
    let url = try #require(HTTPClientURL("\(origin)/session/\(session)/\(path)"))
    return try Self.value(
      try await client.send(.get(url, within: .seconds(300), maximumBodySize: 20_000_000)), path)
  }

  @discardableResult
  private func post(_ path: String, _ words: [String: Any]) async throws -> Any {
    try await Self.post(client, "\(origin)/session/\(session)/\(path)", words)
  }

  private static func post(_ client: HTTPClient, _ url: String, _ words: [String: Any]) async throws -> Any {
    try value(try await response(client, url, words), url)
  }

  private static func response(
    _ client: HTTPClient, _ url: String, _ words: [String: Any]
  ) async throws -> HTTPClientResponse {
    let body = [UInt8](try JSONSerialization.data(withJSONObject: words))
    return try await client.send(
      .post(
        body, to: try #require(HTTPClientURL(url)), headers: [("Content-Type", "application/json")],
        isRepeatable: false, within: .seconds(330), maximumBodySize: 1 << 20))
  }

  private static func value(_ response: HTTPClientResponse, _ what: String) throws -> Any {
    let text = String(decoding: response.body, as: UTF8.self)
    try #require(response.status == 200, "\(what): \(text)")
    let object = try JSONSerialization.jsonObject(with: Data(response.body))
    return try #require((object as? [String: Any])?["value"])
  }
}
