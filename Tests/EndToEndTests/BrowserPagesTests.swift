import AccountEvents
import AppleSimulator
import EventLoop
import Foundation
import HTTPClient
import HTTPServer
import TestSupport
import Testing

/// The simulated Apple's pages in a real browser.
@Loop @Suite(Browser.isThere, .serialized, .timeLimit(.minutes(30))) struct BrowserPagesTests {
  private static let (team, client) = ("A1B2C3D4E5", "com.example.web")

  /// An app that gets what browsers bring.
  @Loop
  private final class App {
    var forms: [[String: String]] = []

    func answer(_ request: HTTPRequest) async -> HTTPResponse {
      guard request.hasMethod("POST"), await request.readBody(upTo: 65_536) == .complete else {
        return .text("nothing here\n", status: 404)
      }
      // Apple's notifications come here, too.
      guard request.path == "/back" else { return .text("received\n") }
      var components = URLComponents()
      components.percentEncodedQuery = request.withBody { body in
        unsafe body.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
      }.replacing("+", with: "%20")
      forms.append(
        Dictionary(
          (components.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { _, second in second }))
      return .text("signed in\n")
    }
  }

  @Test func aPersonSignsInAndLooksAfterTheAccount() async throws {
    Signals.block([])  // SIGPIPE must not end the tests
    let files = TemporaryDirectory()
    let app = App()
    let appServer = try HTTPServer(.plainOnLoopback) { request in await app.answer(request) }
    let apple = SimulatedApple(
      ring: try KeyRing(generating: 1), issuer: AppleNotification.appleIssuer, trustAnchors: .system, clock: { .now })
    let server = try SimulatedAppleServer(apple, port: 0, tls: nil)
    let address = "http://\(appServer.address)/back"
    _ = try apple.enroll(team: Self.team, clients: [Self.client])
    apple.register(redirectURIs: [address], for: Self.client)
    apple.notifications = DeliveryPlan(
      receiver: try #require(HTTPClientURL("http://\(appServer.address)/apple")), attempts: 1, pause: .zero,
      deadline: .seconds(300))
    let serving = [
      Task(executorPreference: Loop.executor) { await server.run() },
      Task(executorPreference: Loop.executor) { await appServer.run() },
    ]
    let result: Result<Void, any Error>
    do {
      result = .success(
        try await Browser.run(in: files.path) { browser in
          try await signIn(browser, server, app, address)
          try await lookAfterTheAccount(browser, server, apple)
        })
    } catch { result = .failure(error) }
    await appServer.drain(within: .seconds(1))
    serving.forEach { $0.cancel() }
    for task in serving { await task.value }
    try result.get()
  }

  private func signIn(
    _ browser: Browser, _ server: SimulatedAppleServer, _ app: App, _ address: String
  ) async throws {
    // What an app asks for is text, whatever it looks like.
    let state = #""><script>document.title='owned'</script><b id=owned>"#
    var components = try #require(URLComponents(string: server.authorizationURL))
    components.queryItems = [
      "client_id": Self.client, "redirect_uri": address, "response_type": "code id_token",
      "response_mode": "form_post", "scope": "name email", "state": state, "nonce": "n",
    ].map { URLQueryItem(name: $0, value: $1) }
    let page = try #require(components.string)

    try await browser.open(page)
    #expect(try await browser.text().contains("sign in to \(Self.client)"))
    #expect(try await !browser.has("#owned"))
    #expect(!(try await browser.screenshot()).isEmpty)
    try await fillIn(browser)
    try await browser.click("input[value=hide]")
    try await browser.click("button[value=continue]")
    // The page sends itself: its script is the one that the policy of the page allows.
    try await until { app.forms.count == 1 }
    #expect(Set(app.forms[0].keys) == ["state", "code", "id_token", "user"])
    #expect(app.forms[0]["state"] == state)
    let user = try #require(app.forms[0]["user"])
    #expect(user.contains(#""firstName":"Ada <b>","lastName":"O'Love""#), "\(user)")
    #expect(user.contains(Person(named: "ada@example.com").address))
    try await until { try await browser.url() == address }

    try await browser.open(page)
    try await fillIn(browser)
    try await browser.click("button[value=continue]")
    try await until { app.forms.count == 2 }
    #expect(Set(app.forms[1].keys) == ["state", "code", "id_token"])

    try await browser.open(page)
    try await browser.click("button[value=cancel]")
    try await until { app.forms.count == 3 }
    #expect(app.forms[2] == ["state": state, "error": "user_cancelled_authorize"])
  }

  private func fillIn(_ browser: Browser) async throws {
    try await browser.type("Ada@example.com", into: "input[name=account]")
    try await browser.type("Ada <b>", into: "input[name=first_name]")
    try await browser.type("O'Love", into: "input[name=last_name]")
  }

  private func lookAfterTheAccount(
    _ browser: Browser, _ server: SimulatedAppleServer, _ apple: SimulatedApple
  ) async throws {
    try await browser.open(server.accountURL)
    try await browser.type("ada@example.com", into: "input[name=account]")
    try await browser.click("button")
    try await until { try await browser.text().contains(Self.client) }
    try await browser.click("button[value=withhold]")
    try await until { try await browser.text().contains("not forwarded") }
    try await browser.click("button[value=forward]")
    try await until { try await !browser.text().contains("not forwarded") }
    try await browser.click("button[value=stop]")
    try await until { try await browser.text().contains("used with no app") }
    await apple.untilTold()
    #expect(
      apple.told.map(\.notification.notification).sorted { $0.occurredAt < $1.occurredAt }.map(\.type)
        == [.emailDisabled, .emailEnabled, .consentRevoked])
  }
}
