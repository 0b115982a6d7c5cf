import EventLoop
import Foundation
import Glibc
import HTTPClient
import SQLite
import TestSupport
import Testing

/// The demo application of `siwa dev`, in a real browser.
@Loop @Suite(.serialized, .timeLimit(.minutes(30))) struct ShopTests {
  /// The program, and where it says that its parts are.
  private struct Stage {
    let dev: RunningProgram
    let shop, appleAccount, customers: String

    /// How many customers of this address the shop has.
    func customers(of email: String) throws -> Int64 {
      let database = try Database(customers, .readOnly, busyTimeout: .seconds(300))
      let count = try database.prepare("SELECT count(*) FROM customer WHERE email = ?")
      return try #require(try count.first(email) { row throws(SQLiteError) in try row.value(0) })
    }
  }

  private static let client = HTTPClient(
    HTTPClientConfiguration(
      userAgent: "tests", trustAnchors: .system, proxy: .none, connectTimeout: .seconds(300), maximumConnections: 4,
      maximumRequests: 16))

  private static func run(_ body: @Loop (Stage) async throws -> Void) async throws {
    Signals.block([])  // SIGPIPE must not end the tests
    let folder = TemporaryDirectory()
    try await RunningProgram.run("siwa", ["dev", "--every", "1h"], ["TMPDIR": folder.path]) { dev in
      func place(_ words: String) async throws -> String {
        let line = try await dev.outputLine(with: words).dropFirst(words.count)
        return try #require(line.split(separator: " ").first.map(String.init))
      }
      let stage = Stage(
        dev: dev, shop: try await place("Open the shop"), appleAccount: try await place("Your Apple Account"),
        customers: try await place("The shop's data"))
      try await body(stage)
      #expect(!dev.errors.contains("the shop:"), "\(dev.errors)")
      dev.signal(SIGINT)
      #expect(try await dev.untilEnd() == .exit(0))
    }
    #expect(unsafe rmdir(folder.path) == 0, "something was left behind")
  }

  /// Signs somebody in, as a person would: from the shop's page to Apple's, and back.
  private func signIn(_ browser: Browser, _ stage: Stage, as account: String, hiding hides: Bool) async throws {
    try await browser.open(stage.shop)
    try await browser.click(".apple")
    try await until { try await browser.text().contains("sign in to com.example.web") }
    try await browser.type(account, into: "input[name=account]")
    if hides { try await browser.click("input[value=hide]") }
    if hides { try await keep("apple", browser) }
    try await browser.click("button[value=continue]")
    try await until { try await browser.text().contains("You bought") }
    #expect(try await browser.url() == stage.shop)
    #expect(try await browser.text().contains("a book, a lamp"))
  }

  /// Does something on Apple's page.
  private func atApple(
    _ browser: Browser, _ stage: Stage, _ account: String, _ action: String, until effect: String
  ) async throws {
    try await browser.open(stage.appleAccount)
    try await browser.type(account, into: "input[name=account]")
    try await browser.click("button")
    try await until { try await browser.text().contains("com.example.web") }
    try await browser.click("button[value=\(action)]")
    try await says(browser, effect)
    try await browser.open(stage.shop)
  }

  private func says(
    _ browser: Browser, _ words: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    var text = ""
    do {
      try await until(
        {
          text = try await browser.text()
          return words.allSatisfy { text.contains($0) }
        }, sourceLocation: sourceLocation)
    } catch {
      Issue.record("\(text)", sourceLocation: sourceLocation)
      throw error
    }
  }

  /// Keeps what the page looks like, for README.md: where `SIWA_SCREENSHOTS` names a folder.
  private func keep(_ name: String, _ browser: Browser) async throws {
    guard let folder = ProcessInfo.processInfo.environment["SIWA_SCREENSHOTS"] else { return }
    try await browser.resize(width: 760, height: 900)
    try Data(try await browser.screenshot()).write(to: URL(fileURLWithPath: "\(folder)/shop-\(name).png"))
  }

  @Test(Browser.isThere) func whatAppleTellsArrivesOnThePage() async throws {
    let files = TemporaryDirectory()
    try await Self.run { stage in
      try await Browser.run(in: files.path) { browser in
        try await signIn(browser, stage, as: "bob@example.com", hiding: true)
        try await says(browser, "(Hide My Email)", "Nothing yet.", "nothing is known yet")
        try await atApple(browser, stage, "bob@example.com", "withhold", until: "not forwarded")
        // It comes by itself: nobody loads the page again.
        try await says(
          browser, "email-disabled by Apple", "relay-changed by siwa-email-relay", "the shop sends you none")
        try await keep("events", browser)

        // A form that does not come from the shop's page changes nothing.
        let cookie = "siwa-shop-visit=\(try await browser.cookie("siwa-shop-visit"))"
        for path in ["sign-out", "delete"] {
          let url = try #require(HTTPClientURL(stage.shop + path))
          let forged = try await Self.client.send(
            .post(
              form: [("token", "guessed")], to: url, headers: [("Cookie", cookie)], isRepeatable: true,
              within: .seconds(300), maximumBodySize: 65_536))
          #expect(forged.status == 400)
        }
        try await browser.open(stage.shop)
        try await browser.click("#sign-out")
        try await until { try await browser.has(".apple") }
        #expect(try await !browser.text().contains("privaterelay"))
        // Whoever cancels at Apple comes back, and is not signed in.
        try await browser.click(".apple")
        try await until { try await browser.has("button[value=cancel]") }
        try await browser.click("button[value=cancel]")
        try await says(browser, "You have not signed in.")
      }
    }
  }

  @Test(Browser.isThere) func whoAsksForItIsDeletedStepByStep() async throws {
    let files = TemporaryDirectory()
    try await Self.run { stage in
      try await Browser.run(in: files.path) { browser in
        try await signIn(browser, stage, as: "ada@example.com", hiding: true)
        let text = try await browser.text()
        let email = try #require(
          text.split(whereSeparator: \.isWhitespace).map(String.init).first {
            $0.hasSuffix("@privaterelay.appleid.com")
          }, "\(text)")
        #expect(try stage.customers(of: email) == 1)
        try await browser.click("#delete")
        try await says(
          browser, "this account no longer exists", "account-deletion-requested by siwa-accounts",
          "tokens-revoked by siwa-token-revoker", "account-erased by siwa-data-eraser", "Deletion: completed")
        #expect(try await browser.has("#steps li"))
        #expect(try await !browser.has("#delete"))
        #expect(try await !browser.text().contains(email))
        #expect(try stage.customers(of: email) == 0)
        try await keep("deleted", browser)
        try await browser.open(stage.appleAccount)
        try await browser.type("ada@example.com", into: "input[name=account]")
        try await browser.click("button")
        try await says(browser, "used with no app")

        // The same person again is somebody new.
        try await signIn(browser, stage, as: "ada@example.com", hiding: true)
        #expect(try stage.customers(of: email) == 1)
      }
    }
  }

  @Test(Browser.isThere) func whoDeletesTheAppleAccountIsGoneFromTheShop() async throws {
    let files = TemporaryDirectory()
    // Were it markup, it would read otherwise.
    let account = "o'hara&lt@example.com"
    try await Self.run { stage in
      try await Browser.run(in: files.path) { browser in
        try await signIn(browser, stage, as: account, hiding: false)
        #expect(try await browser.text().contains(account))
        #expect(try stage.customers(of: account) == 1)
        try await atApple(browser, stage, account, "stop", until: "used with no app")
        try await says(
          browser, "you have stopped using your Apple Account here", "sessions-ended by siwa-token-revoker")
        #expect(try await !browser.has("#sign-out"))
        #expect(try await !browser.text().contains(account))
        #expect(try stage.customers(of: account) == 1, "the policy keeps what was bought")

        try await signIn(browser, stage, as: account, hiding: false)
        #expect(try stage.customers(of: account) == 1)
        try await atApple(browser, stage, account, "delete", until: "used with no app")
        try await says(
          browser, "this account no longer exists", "account-delete by Apple", "account-erased by siwa-data-eraser")
        #expect(try await !browser.text().contains(account))
        #expect(try stage.customers(of: account) == 0)
      }
    }
  }

  @Test func believesNoAnswerThatItHasNotAskedFor() async throws {
    let client = Self.client
    try await Self.run { stage in
      func send(
        _ path: String, form: [(name: String, value: String)]? = nil, cookie: String? = nil
      ) async throws -> HTTPClientResponse {
        let url = try #require(HTTPClientURL(stage.shop.dropLast() + path))
        let headers = cookie.map { [(name: "Cookie", value: $0)] } ?? []
        return try await client.send(
          form.map {
            .post(
              form: $0, to: url, headers: headers, isRepeatable: true, within: .seconds(300), maximumBodySize: 65_536)
          } ?? .get(url, headers: headers, within: .seconds(300), maximumBodySize: 65_536))
      }
      func text(_ response: HTTPClientResponse) -> String { String(decoding: response.body, as: UTF8.self) }

      let begun = try await send("/sign-in")
      #expect(begun.status == 303)
      let header = try #require(begun.header("Set-Cookie"))
      #expect(header.hasSuffix("; Path=/apple; Max-Age=600; HttpOnly; Secure; SameSite=None"))
      let cookie = String(try #require(header.split(separator: ";").first))
      let location = try #require(begun.header("Location"))
      let asked = try #require(URLComponents(string: location)?.queryItems)
      let parameters = Dictionary(uniqueKeysWithValues: asked.map { ($0.name, $0.value ?? "") })
      #expect(parameters["response_mode"] == "form_post" && parameters["nonce"]?.isEmpty == false)
      let state = try #require(parameters["state"])
      #expect(parameters["redirect_uri"] == stage.shop + "apple")

      let answer = [(name: "code", value: "c"), (name: "id_token", value: "<b>ey</b>")]
      for (state, cookie) in [(state, nil), ("other", cookie), ("", cookie), (state, cookie + "x")] {
        let response = try await send("/apple", form: answer + [("state", state)], cookie: cookie)
        #expect(response.status == 400 && text(response).contains("belongs to no sign-in"), "\(text(response))")
        #expect(response.header("Set-Cookie") == nil)
      }
      // The right state, and a token that Apple has not signed; then the same once more.
      let refused = try await send("/apple", form: answer + [("state", state)], cookie: cookie)
      #expect(refused.status == 400 && text(refused).contains("You are not signed in: "), "\(text(refused))")
      #expect(refused.header("Set-Cookie") == nil && !text(refused).contains("<b>"))
      let again = try await send("/apple", form: answer + [("state", state)], cookie: cookie)
      #expect(text(again).contains("belongs to no sign-in"))

      for path in ["/delete", "/sign-out"] {
        #expect(try await send(path, form: [("token", "")], cookie: "siwa-shop-visit=x").status == 400)
        #expect(try await send(path).status == 404)
      }
      #expect(try await send("/live?x").status == 200)
      let front = try await send("/", cookie: "siwa-shop-visit=x; siwa-shop-sign-in=\(state)")
      #expect(front.status == 200 && text(front).contains("Sign in with Apple"))
      let policy = try #require(front.header("Content-Security-Policy"))
      #expect(policy.hasPrefix("default-src 'none'; ") && !policy.contains("unsafe"))

      // By another name it is another site, which must not see the pages.
      let other = stage.shop.replacing("localhost", with: "127.0.0.1")
      let url = try #require(HTTPClientURL(other))
      let misdirected = try await client.send(.get(url, within: .seconds(300), maximumBodySize: 65_536))
      #expect(misdirected.status == 421)
    }
  }
}
