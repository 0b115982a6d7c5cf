import Cryptography
import HTTPServer

/// What a person does to their Apple Account.
private enum AccountAction: String {
  /// Stops using the account with an app.
  case stop
  /// Has mail to the private relay forwarded again.
  case forward
  /// Has it withheld.
  case withhold
  /// Deletes the account.
  case delete
}

// The page on which a person looks after their Apple Account, in a browser.
extension SimulatedApple {
  /// `GET /account?account=…` shows the apps that the person has signed in to, `POST /account` changes something.
  func accountResponse(_ request: HTTPRequest) async -> HTTPResponse {
    if request.hasMethod("GET") {
      guard let fields = FormFields([UInt8]((request.query ?? "").utf8)) else { return HTTPResponse(status: 400) }
      guard let account = fields["account"] else { return Self.front.response() }
      guard let person = Person(account: account) else { return Self.front.response(status: 400) }
      return page(of: person, account).response()
    }
    guard request.hasMethod("POST") else { return HTTPResponse(status: 405, headers: [("Allow", "GET, POST")]) }
    guard let fields = await request.form().flatMap(FormFields.init), let account = fields["account"],
      let person = Person(account: account), let action = fields["action"].flatMap(AccountAction.init)
    else { return HTTPResponse(status: 400) }
    do {
      guard try act(action, person, on: fields["client_id"]) else { return HTTPResponse(status: 400) }
    } catch {
      return HTTPResponse(status: 503)  // OpenSSL gives no random bytes
    }
    return .redirect(to: "/account?account=\(percentEncoded(account))")
  }

  /// Does it, and tells the developer. False where an app would have to be named that the person has signed in to.
  private func act(_ action: AccountAction, _ person: Person, on client: String?) throws(CryptographyError) -> Bool {
    if action == .delete {
      let apps = authorizations.apps(of: person)
      authorizations.end(person, nil)
      // One of a team's apps is told for all of them.
      var told: Set<String?> = []
      for app in apps where told.insert(team(of: app.client)).inserted {
        try tell(.accountDeleted, of: app.consent.person, app.client)
      }
      return true
    }
    guard let client, let consent = authorizations.consent(of: person, to: client) else { return false }
    switch action {
    case .stop:
      authorizations.end(person, client)
      try tell(.consentRevoked, of: consent.person, client)
    case .forward, .withhold:
      guard authorizations.forwardMail(action == .forward, of: person, to: client) else { break }
      try tell(action == .forward ? .emailEnabled : .emailDisabled, of: consent.person, client)
    case .delete: break
    }
    return true
  }

  private static let front = Page(
    title: "Apple Account",
    body: """
      <form method="get" action="/account">
      <label>Apple Account <input type="email" name="account" required autocomplete="off"></label>
      <button>Continue</button></form>
      """)

  private func page(of person: Person, _ account: String) -> Page {
    func button(_ action: AccountAction, _ words: String, _ client: String? = nil) -> String {
      let fields = hiddenField("account", account) + (client.map { hiddenField("client_id", $0) } ?? "")
      let button = "<button name=\"action\" value=\"\(action.rawValue)\">\(escaped(words))</button>"
      return "<form method=\"post\" action=\"/account\">\(fields)\(button)</form>"
    }
    let apps = authorizations.apps(of: person).map { client, consent in
      let person = known(consent.person, to: client)
      let mail =
        if !consent.isRelayed {
          ""
        } else if consent.forwardsMail {
          button(.withhold, "Turn off forwarding", client)
        } else {
          button(.forward, "Turn on forwarding", client)
        }
      let address =
        if !person.tellsAddress {
          "The app has no address of yours."
        } else if person.hidesAddress {
          "Hide My Email: \(person.address)\(consent.forwardsMail ? "" : ", not forwarded")"
        } else {
          "Your e-mail: \(person.address)"
        }
      return """
        <h2>\(escaped(client))</h2><p>\(escaped(address))</p>
        \(mail)\(button(.stop, "Stop using Apple ID", client))
        """
    }
    return Page(
      title: "Apple Account",
      body: """
        <p>\(escaped(account))</p>
        \(apps.isEmpty ? "<p>This account is used with no app.</p>" : apps.joined(separator: "\n"))
        <hr>\(button(.delete, "Delete the Apple Account"))
        """)
  }
}
