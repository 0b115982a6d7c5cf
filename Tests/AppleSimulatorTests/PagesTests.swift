import AccountEvents
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import HTTPServer
import Synchronization
import Testing

/// The pages on which somebody in a browser is the user.
@Loop @Suite struct PagesTests {
  nonisolated static let (team, client) = ("A1B2C3D4E5", "com.example.web")
  nonisolated static let address = "https://shop.example.com/back?from=apple"
  nonisolated static let account = "Ada@example.com"

  /// What an app asks for by default, and what the person fills in.
  nonisolated static let request = [
    "client_id": client, "redirect_uri": address, "response_type": "code id_token", "response_mode": "form_post",
    "scope": "name email", "state": "s+t/a te&", "nonce": "n0nce",
  ]
  nonisolated static let person = [
    "account": account, "first_name": "Ada", "last_name": "O'Love <lace>", "address": "hide", "decision": "continue",
  ]

  private static func run(_ body: @Loop (_ rehearsal: Rehearsal) async throws -> Void) async throws {
    try await Rehearsal.run { rehearsal in
      _ = try rehearsal.apple.enroll(team: team, clients: [client])
      rehearsal.apple.register(redirectURIs: [address], for: client)
      try await body(rehearsal)
    }
  }

  private func get(_ rehearsal: Rehearsal, _ fields: [String: String]) async throws -> HTTPClientResponse {
    let query = fields.map { "\($0.key)=\(Self.encoded($0.value))" }.joined(separator: "&")
    return try await rehearsal.get("/auth/authorize?\(query)")
  }

  private func decide(_ rehearsal: Rehearsal, _ changes: [String: String] = [:]) async throws -> HTTPClientResponse {
    let fields = Self.request.merging(Self.person) { $1 }.merging(changes) { $1 }
    return try await rehearsal.post(form: fields.map { ($0.key, $0.value) }, to: "/auth/authorize")
  }

  private static func encoded(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
  }

  /// The hidden fields of a page, unescaped by another implementation.
  private func fields(_ response: HTTPClientResponse) throws -> [String: String] {
    let text = String(decoding: response.body, as: UTF8.self)
    var fields: [String: String] = [:]
    for match in text.matches(of: #/<input type="hidden" name="([^"]*)" value="([^"]*)">/#) {
      let value = try #require(String(match.2).removingXMLEscapes, "\(match.2)")
      fields[String(match.1)] = value
    }
    return fields
  }

  // MARK: Signing in

  @Test func thePageShowsWhatTheAppAskedForAndNothingAsMarkup() async throws {
    try await Self.run { rehearsal in
      var request = Self.request
      request["state"] = #""><script>alert('1')</script>&amp;"#
      let response = try await get(rehearsal, request)
      let text = String(decoding: response.body, as: UTF8.self)
      #expect(response.status == 200)
      #expect(!text.contains("<script"), "no script on this page, whoever's")
      #expect(try fields(response) == request)
      for name in ["account", "first_name", "last_name", "address", "decision"] {
        #expect(text.contains("name=\"\(name)\""))
      }
      #expect(response.header("Content-Security-Policy")?.hasPrefix("default-src 'none'") == true)
      #expect(response.header("Cache-Control") == "no-store")
      request["scope"] = "email"
      let fewer = String(decoding: try await get(rehearsal, request).body, as: UTF8.self)
      #expect(!fewer.contains("first_name") && fewer.contains("name=\"address\""))
      request["scope"] = nil
      #expect(!String(decoding: try await get(rehearsal, request).body, as: UTF8.self).contains("name=\"address\""))
    }
  }

  @Test func anAnswerByFormHasTheUserTheFirstTimeAlone() async throws {
    try await Self.run { rehearsal in
      let first = try await decide(rehearsal)
      let text = String(decoding: first.body, as: UTF8.self)
      #expect(first.status == 200)
      #expect(text.contains(#"<form method="post" action="\#(Self.address)">"#))
      #expect(text.contains("<script>document.forms[0].submit()</script>"))
      let answer = try fields(first)
      #expect(Set(answer.keys) == ["state", "code", "id_token", "user"])
      #expect(answer["state"] == Self.request["state"])
      let user = try jsonObject([UInt8](try #require(answer["user"]).utf8))
      let name = try #require(user["name"] as? [String: String])
      #expect(name == ["firstName": "Ada", "lastName": "O'Love <lace>"])
      let person = Person(named: Self.account.lowercased())
      #expect(user["email"] as? String == person.address, "hidden")

      let token = try await verify(answer, rehearsal)
      #expect(token.account.subject.text == person.subject)
      #expect(token.isBoundByNonce)
      #expect(token.email?.isPrivate == true && token.email?.address.text == person.address)

      let again = try fields(try await decide(rehearsal, ["address": "share", "first_name": "Eve"]))
      #expect(Set(again.keys) == ["state", "code", "id_token"])
      #expect(try await verify(again, rehearsal).email == token.email, "the choice of the first time stays")
      #expect(again["code"] != answer["code"])
      #expect(rehearsal.apple.told.isEmpty)
    }
  }

  @Test func theAppGetsTheAddressThatThePersonShares() async throws {
    try await Self.run { rehearsal in
      let shared = try await verify(try fields(try await decide(rehearsal, ["address": "share"])), rehearsal)
      #expect(shared.email?.address.text == Self.account && shared.email?.isPrivate == false)
      let answer = try fields(try await decide(rehearsal, ["account": "bob@example.com", "scope": "name"]))
      #expect(try await verify(answer, rehearsal).email == nil, "the app did not ask for it")
      let bob = try jsonObject([UInt8](try #require(answer["user"]).utf8))
      #expect(Set(bob.keys) == ["name"])
      let nothing = try fields(try await decide(rehearsal, ["account": "cyn@example.com", "scope": ""]))
      #expect(nothing["user"] == nil)
    }
  }

  /// What AppleID makes of the identity token that came beside the code.
  private func verify(_ answer: [String: String], _ rehearsal: Rehearsal) async throws -> VerifiedIdentityToken {
    let set = try await rehearsal.get("/auth/keys").body
    let keys = try unsafe AppleKeySet(reading: set.span.bytes, at: .now, after: .none)
    let client = try #require(ClientID(Self.client))
    let verifier = IdentityTokenVerifier(
      issuer: AppleNotification.appleIssuer, teams: [client: try #require(TeamID(Self.team))],
      clockTolerance: .seconds(60))
    let signIn = ExpectedSignIn(
      to: client, nonce: SignInNonce("n0nce"), code: AuthorizationCode(try #require(answer["code"])))
    let text = try #require(answer["id_token"])
    let written = try #require(UnverifiedIdentityToken(text))
    let verdict = verifier.verify(written, of: signIn, at: .now, keys: keys)
    guard case .verified(let token) = verdict else {
      Issue.record("\(verdict)")
      throw CancellationError()
    }
    let other = ExpectedSignIn(
      to: client, nonce: SignInNonce("n0nce"), code: AuthorizationCode("another"))
    guard case .refused(.wrongCode) = verifier.verify(written, of: other, at: .now, keys: keys) else {
      Issue.record("c_hash is not the code's")
      throw CancellationError()
    }
    return token
  }

  @Test func anAnswerByQueryOrFragmentIsARedirection() async throws {
    try await Self.run { rehearsal in
      for (mode, types, mark) in [
        ("query", "code", "&"), ("", "code", "&"), ("fragment", "code id_token", "#"), ("", "code id_token", "#"),
        ("fragment", "code", "#"),
      ] {
        let response = try await decide(
          rehearsal, ["scope": "", "response_mode": mode, "response_type": types, "nonce": ""])
        #expect(response.status == 303)
        let location = try #require(response.header("Location"))
        let prefix = "\(Self.address)\(mark)state=s%2Bt%2Fa%20te%26&code=c"
        #expect(location.hasPrefix(prefix), "\(location)")
        #expect(location.contains("&id_token=") == types.contains("id_token"))
      }
    }
  }

  @Test func whoCancelsIsSentBackWithAnError() async throws {
    try await Self.run { rehearsal in
      let answer = try fields(try await decide(rehearsal, ["decision": "cancel", "account": ""]))
      #expect(answer == ["state": "s+t/a te&", "error": "user_cancelled_authorize"])
      let response = try await decide(
        rehearsal, ["decision": "cancel", "scope": "", "response_mode": "query", "response_type": "code", "state": ""])
      #expect(response.header("Location") == "\(Self.address)&error=user_cancelled_authorize")
    }
  }

  nonisolated static let refused: [(changes: [String: String], error: String)] = [
    (["client_id": ""], "invalid_client"), (["client_id": "com.example.other"], "invalid_client"),
    (["redirect_uri": ""], "invalid_request"), (["redirect_uri": "https://evil.example.com/"], "invalid_request"),
    (["redirect_uri": address + "&x=1"], "invalid_request"), (["redirect_uri": address + "#x"], "invalid_request"),
    (["response_type": ""], "unsupported_response_type"), (["response_type": "id_token"], "unsupported_response_type"),
    (["response_type": "token"], "unsupported_response_type"), (["scope": "name phone"], "invalid_scope"),
    (["response_mode": "query"], "invalid_request"), (["response_mode": "fragment"], "invalid_request"),
    (["response_mode": "body"], "invalid_request"), (["scope": "", "response_mode": "query"], "invalid_request"),
    (["state": String(repeating: "a", count: 2049)], "invalid_request"),
    (["nonce": String(repeating: "a", count: 2049)], "invalid_request"),
  ]
  @Test(arguments: refused)
  func whatAppleDoesNotAskThePersonIsSentNowhere(changes: [String: String], error: String) async throws {
    try await Self.run { rehearsal in
      var responses = [try await decide(rehearsal, changes)]
      // The client takes no longer address.
      if changes.values.allSatisfy({ $0.utf8.count < 1000 }) {
        responses.append(try await get(rehearsal, Self.request.merging(changes) { $1 }))
      }
      for response in responses {
        #expect(response.status == 400)
        #expect(response.header("Location") == nil)
        let text = String(decoding: response.body, as: UTF8.self)
        #expect(text.contains("<code>\(error)</code>"))
        #expect(!text.contains("<form"))
      }
    }
  }

  @Test(arguments: [
    ["account": ""], ["account": "ada"], ["account": "a@b@c"], ["account": "@b"], ["account": "a b@example.com"],
    ["account": "\"<a>@example.com"], ["account": String(repeating: "a", count: 250) + "@b.cd"],
    ["first_name": String(repeating: "a", count: 201)], ["last_name": "a\u{0}b"],
  ])
  func whatIsNoPersonIsAskedAgain(changes: [String: String]) async throws {
    try await Self.run { rehearsal in
      let response = try await decide(rehearsal, changes)
      #expect(response.status == 400)
      #expect(try fields(response) == Self.request)
    }
  }

  @Test func knowsNothingElse() async throws {
    try await Self.run { rehearsal in
      let statuses = [
        try await decide(rehearsal, ["decision": "perhaps"]).status,
        try await rehearsal.post("{}", to: "/auth/authorize").status,
        try await rehearsal.get("/auth/authorize").status,
        try await rehearsal.get("/auth/authorize?client_id=%zz").status,
        try await rehearsal.get("/auth/authorize?state=a&state=b").status,
        try await rehearsal.post("", to: "/account").status,
      ]
      #expect(statuses == [400, 400, 400, 400, 400, 400])
    }
  }

  @Test func aCodeOfThePageWorksOnceForFiveMinutesWithItsAddress() async throws {
    let time = Mutex(Timestamp.now)
    let apple = try SimulatedApple.forTests { time.withLock { $0 } }
    let server = try SimulatedAppleServer(apple, port: 0, tls: nil)
    try await withThrowingTaskGroup { group in
      group.addTask { await server.run() }
      defer { group.cancelAll() }
      let rehearsal = Rehearsal(apple: apple, server: server)
      let key = try apple.enroll(team: Self.team, clients: [Self.client])
      apple.register(redirectURIs: [Self.address], for: Self.client)
      func redeem(_ code: String?, at address: String?) async throws -> [String: Any] {
        let secret = try key.secret(of: Self.team, for: Self.client, at: time.withLock { $0 })
        var form = [
          ("client_id", Self.client), ("client_secret", secret), ("grant_type", "authorization_code"),
          ("code", try #require(code)),
        ]
        if let address { form.append(("redirect_uri", address)) }
        return try jsonObject(try await rehearsal.post(form: form, to: "/auth/token").body)
      }
      for (seconds, isGood) in [(299, true), (300, false)] as [(Int64, Bool)] {
        let code = try fields(try await decide(rehearsal))["code"]
        time.withLock { $0 = $0 + .seconds(seconds) }
        #expect(try await redeem(code, at: nil)["error"] as? String == "invalid_grant")
        #expect(try await redeem(code, at: Self.address + "x")["error"] as? String == "invalid_grant")
        let answer = try await redeem(code, at: Self.address)
        #expect((answer["refresh_token"] != nil) == isGood)
        #expect(try await redeem(code, at: Self.address)["error"] as? String == "invalid_grant", "once")
        guard isGood else { continue }
        let parts = try #require(answer["id_token"] as? String).split(separator: ".").map(String.init)
        let claims = try jsonObject(try #require(Base64URL.decode(parts[1])))
        #expect(claims["nonce"] as? String == "n0nce")
      }
    }
  }

  // MARK: The account

  private func act(_ rehearsal: Rehearsal, _ action: String, _ changes: [String: String] = [:]) async throws -> Int {
    let fields = ["account": Self.account, "client_id": Self.client, "action": action].merging(changes) { $1 }
    return try await rehearsal.post(form: fields.map { ($0.key, $0.value) }, to: "/account").status
  }

  private func accountPage(_ rehearsal: Rehearsal) async throws -> String {
    let response = try await rehearsal.get("/account?account=\(Self.encoded(Self.account))")
    #expect(response.status == 200)
    return String(decoding: response.body, as: UTF8.self)
  }

  @Test func whatAPersonDoesToTheAccountIsToldToTheDeveloper() async throws {
    try await Self.run { rehearsal in
      try await Receiver.run(answering: [200]) { receiver, plan in
        rehearsal.apple.notifications = plan
        let address = Person(named: Self.account.lowercased()).address
        #expect(try await accountPage(rehearsal).contains("used with no app"))
        _ = try await decide(rehearsal)
        #expect(try await accountPage(rehearsal).contains("Hide My Email: \(address)</p>"))
        for _ in 0..<2 { #expect(try await act(rehearsal, "withhold") == 303) }  // the second changes nothing
        #expect(try await accountPage(rehearsal).contains("\(address), not forwarded"))
        #expect(try await act(rehearsal, "forward") == 303)
        #expect(try await act(rehearsal, "stop") == 303)
        #expect(try await accountPage(rehearsal).contains("used with no app"))
        #expect(try await act(rehearsal, "stop") == 400)
        let again = try fields(try await decide(rehearsal, ["address": "share"]))
        #expect(again["user"] != nil, "as the first time")
        let shared = try await accountPage(rehearsal)
        #expect(!shared.contains("forwarding"), "nothing is relayed")
        #expect(try await act(rehearsal, "withhold") == 303)
        #expect(try await act(rehearsal, "delete", ["client_id": ""]) == 303)
        await rehearsal.apple.untilTold()
        #expect(
          Set(rehearsal.apple.told.map(\.notification.notification.type))
            == [.emailDisabled, .emailEnabled, .consentRevoked, .accountDeleted])
        #expect(receiver.bodies.count == 4)
        let told = rehearsal.apple.told.map(\.notification.notification).sorted { $0.occurredAt < $1.occurredAt }
        #expect(told.map(\.type) == [.emailDisabled, .emailEnabled, .consentRevoked, .accountDeleted])
        #expect(told.allSatisfy { $0.person.subject == Person(named: Self.account.lowercased()).subject })
        #expect(told[0].person.address == address)
      }
    }
  }

  @Test func whoDeletesTheAccountIsAuthorizedNowhere() async throws {
    try await Self.run { rehearsal in
      let ada = Person(named: Self.account.lowercased())
      let native = try rehearsal.apple.signIn(ada, to: Self.client)
      #expect(try rehearsal.apple.redeem(native, by: Self.client))
      #expect(try await accountPage(rehearsal).contains(Self.client), "a sign-in in an app is one too")
      #expect(try await act(rehearsal, "delete") == 303)
      #expect(!rehearsal.apple.isAuthorized(ada, for: Self.client))
      for (action, changes) in [
        ("stop", ["client_id": "com.example.other"]), ("burn", [:]), ("delete", ["account": "x"]), ("stop", [:]),
      ] { #expect(try await act(rehearsal, action, changes) == 400) }
      #expect(try await rehearsal.get("/account").status == 200)
      #expect(try await rehearsal.get("/account?account=%3Cb%3E").status == 400)
    }
  }

  @Test(arguments: ["/account", "/auth/authorize"])
  func whatAnotherSiteHasABrowserSendIsRefused(path: String) async throws {
    try await Self.run { rehearsal in
      let ada = Person(named: Self.account.lowercased())
      #expect(try rehearsal.apple.redeem(try rehearsal.apple.signIn(ada, to: Self.client), by: Self.client))
      let form = Self.request.merging(Self.person) { $1 }.merging(["action": "delete"]) { $1 }.map {
        ($0.key, $0.value)
      }
      let own = "http://\(rehearsal.server.address)"
      for (headers, isRefused) in [
        ([("Origin", "https://evil.example")], true), ([("Origin", "null")], true), ([("Origin", own + "0")], true),
        ([("Sec-Fetch-Site", "cross-site"), ("Origin", own)], true), ([("Sec-Fetch-Site", "same-site")], true),
        ([("Sec-Fetch-Site", "same-origin"), ("Origin", own)], false), ([("Origin", own)], false), ([], false),
      ] as [([(name: String, value: String)], Bool)] {
        let response = try await rehearsal.post(form: form, to: path, headers: headers)
        #expect((response.status == 403) == isRefused, "\(headers)")
        if isRefused { #expect(rehearsal.apple.isAuthorized(ada, for: Self.client)) }
      }
      // Its pages' own forms say where they come from.
      #expect(try await get(rehearsal, Self.request).header("Referrer-Policy") == "strict-origin")
    }
  }

  @Test func redirectionsAreMadeKnownOverHTTP() async throws {
    try await Rehearsal.run { rehearsal in
      func enroll(_ uris: String) async throws -> Int {
        try await rehearsal.post(
          #"{"team":"A1B2C3D4E5","audiences":["\#(Self.client)"],"redirect_uris":[\#(uris)]}"#, to: "/simulator/team"
        ).status
      }
      let statuses = [
        try await enroll("\"\(Self.address)\""), try await get(rehearsal, Self.request).status,
      ]
      #expect(statuses == [200, 200])
      for uri in ["\"javascript:alert(1)\"", "\"https://a.example.com/#x\"", "\"http://example.com/\"", "7"] {
        let status = try await enroll(uri)
        #expect(status == 400)
      }
    }
  }
}

extension String {
  /// What a browser reads out of an attribute, by Foundation's property lists.
  fileprivate var removingXMLEscapes: String? {
    let list = "<plist version=\"1.0\"><string>\(self)</string></plist>"
    do {
      return try unsafe PropertyListSerialization.propertyList(from: Data(list.utf8), format: nil) as? String
    } catch {
      return nil
    }
  }
}
