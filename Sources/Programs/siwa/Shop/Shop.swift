import AccountEvents
import AccountServices
import Configuration
import EventLoop
import HTTPServer
import Kafka

/// The demo application: a shop on the web in which people sign in with Apple, see their account, and have it deleted.
///
/// It is an application like yours. It knows Apple's authorization page and siwa-accounts' HTTP API, reads siwa's topics, and
/// has no key, client secret or refresh token of Apple's. What it does itself is what docs/sign-in.md says that an application
/// does: `state`, `nonce` and its own sessions.
///
/// It is at `http://localhost:PORT`, and Apple's pages at `http://127.0.0.1:PORT`: two sites for a browser, as in the world.
/// So Apple's answer is a POST from another site, which a cookie comes along with only if it is `SameSite=None; Secure`.
/// Chromium and Firefox keep such a cookie of `http://localhost`, which they take for secure; other browsers may not, and need
/// the TLS that every shop has that is none of a demonstration.
@Loop
final class Shop {
  /// What it is told before it starts.
  struct Configuration {
    /// The Services ID at Apple, and its team.
    let client: ClientID
    let team: TeamID
    /// Apple's page on which people sign in, and the one on which they look after their Apple Account.
    let authorize: String
    let appleAccount: String
  }

  /// A sign-in that has begun: what its answer has to bring, or be bound to.
  private struct SignIn {
    let state, nonce: String
  }

  /// How the cookies are called: that of a sign-in comes back from Apple's site, that of a visit never does.
  private static let (signInCookie, visitCookie) = ("siwa-shop-sign-in", "siwa-shop-visit")
  private nonisolated static let callback = "/apple"

  /// Where the shop is.
  nonisolated let origin: String
  /// The port of this machine that it is at.
  nonisolated let port: UInt16
  private let configuration: Configuration
  private let accounts: AccountsClient
  private let customers: Customers
  private var signIns = BrowserMemory<SignIn>(most: 200, lifetime: .seconds(600))
  private var visits = BrowserMemory<Visit>(most: 200, lifetime: .seconds(3600))
  private var news = ShopNews()

  /// Where Apple has a browser bring its answer, byte for byte.
  nonisolated var redirectURI: String { origin + Self.callback }

  /// A shop at that port of this machine, with these customers.
  init(port: UInt16, _ configuration: Configuration, _ accounts: AccountsClient, _ customers: Customers) {
    (origin, self.port) = ("http://localhost:\(port)", port)
    (self.configuration, self.accounts, self.customers) = (configuration, accounts, customers)
  }

  /// Takes a record of siwa's topics, for those who are in the shop. Throws what is wrong with it.
  func read(_ record: ConsumedRecord) throws {
    for item in try news.read(record) { visits.updateAll { $0.hear(item) } }
  }

  /// Answers a browser.
  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    // Another name for this machine would be another site: its pages must not see the shop's.
    guard request.header("Host") == String(origin.dropFirst("http://".count)) else {
      return .text("The shop is at \(origin)/\n", status: 421)
    }
    do {
      switch (request.method, request.path) {
      case ("GET", "/"): return try await page(request)
      case ("GET", "/live"): return try await update(request)
      case ("GET", "/sign-in"): return try beginSignIn()
      case ("POST", Self.callback): return try await endSignIn(request)
      case ("POST", "/delete"): return try await delete(request)
      case ("POST", "/sign-out"): return await signOut(request)
      default: return .text("There is nothing here.\n", status: 404)
      }
    } catch {
      Terminal.complain("siwa: the shop: \(error)")
      return ShopPage(body: ShopPage.front("The shop cannot do that at the moment. Try again.")).response(status: 503)
    }
  }

  // MARK: Signing in

  /// Sends the browser to Apple, and remembers what has to come back.
  private func beginSignIn() throws -> HTTPResponse {
    let signIn = SignIn(state: try .secret(), nonce: try .secret())
    let secret = try signIns.add(signIn, at: .now)
    let parameters = [
      ("client_id", configuration.client.text), ("redirect_uri", redirectURI), ("response_type", "code id_token"),
      ("response_mode", "form_post"), ("scope", "email"), ("state", signIn.state), ("nonce", signIn.nonce),
    ]
    let query = parameters.map { "\($0)=\($1.percentEncoded)" }.joined(separator: "&")
    return .seeOther(
      "\(configuration.authorize)?\(query)",
      cookies: [
        "\(Self.signInCookie)=\(secret); Path=\(Self.callback); Max-Age=600; HttpOnly; Secure; SameSite=None"
      ])
  }

  /// Takes what the browser brings from Apple: believed is only what belongs to a sign-in that this browser has begun, and
  /// of that what siwa-accounts verifies.
  private func endSignIn(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let secret = request.cookie(Self.signInCookie), let form = await FormFields(of: request),
      let begun = signIns.value(of: secret, at: .now), begun.state.isSecret(form["state"])
    else {
      return Self.refusal("This answer of Apple's belongs to no sign-in that this browser has begun here.")
    }
    signIns.forget(secret)  // Once.
    guard let code = form["code"], let identityToken = form["id_token"] else {
      return Self.refusal("You have not signed in.")
    }
    // The cookie's secret tells this sign-in from all others.
    let answer = try await accounts.signIn(
      identityToken: identityToken, code: code, nonce: begun.nonce, client: configuration.client.text,
      redirectURI: redirectURI, key: secret)
    switch answer {
    case .beginAgain: return Self.refusal("That did not work. Sign in once more.")
    case .refused(let reason): return Self.refusal("You are not signed in: \(reason).")
    case .signedIn(let person):
      let number = try customers.welcome(
        person.subject, of: configuration.team, email: person.email, isRelayed: person.isRelayed, at: person.at)
      let visit = try Visit(
        account: person.account, customer: number, who: ShopNews.digest(of: person.subject, configuration.team),
        signedInAt: person.at)
      // A new secret for each visit: nobody has one beforehand.
      let key = try visits.add(visit, at: .now)
      return .seeOther(
        "/",
        cookies: [
          "\(Self.visitCookie)=\(key); Path=/; Max-Age=3600; HttpOnly; Secure; SameSite=Lax",
          "\(Self.signInCookie)=; Path=\(Self.callback); Max-Age=0; HttpOnly; Secure; SameSite=None",
        ])
    }
  }

  // MARK: A visit

  private func page(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let body = try await body(of: request.cookie(Self.visitCookie)) else {
      return ShopPage(body: ShopPage.front()).response()
    }
    return ShopPage(body: body, isLive: true).response()
  }

  /// What the page that is shown becomes; 204 where it stays as it is.
  private func update(_ request: HTTPRequest) async throws -> HTTPResponse {
    let (secret, query) = (request.cookie(Self.visitCookie), request.query)
    let body = try await body(of: secret) ?? ShopPage.front("Signed out: your visit is over.")
    return ShopPage.update(body, for: query) ?? HTTPResponse(status: 204)
  }

  /// What there is to be seen of a visit; nil where there is none.
  private func body(of secret: String?) async throws -> Markup? {
    guard let secret, let begun = visits.value(of: secret, at: .now) else { return nil }
    // The data eraser has been in the shop's database, and asked nobody.
    if try customers.customer(begun.customer) == nil { visits.update(secret) { $0.take(.customerErased) } }
    let known = await knowledge(of: begun)
    guard let visit = visits.value(of: secret, at: .now) else { return nil }
    return ShopPage.visit(
      visit, try customers.customer(visit.customer), known, appleAccount: configuration.appleAccount)
  }

  private func knowledge(of visit: Visit) async -> ShopPage.Knowledge {
    var known = ShopPage.Knowledge()
    do {
      if visit.state == .open { known.account = try await accounts.account(visit.account) }
      if let deletion = visit.deletion { known.deletion = try await accounts.deletion(deletion) }
    } catch {
      known.isAnswering = false  // The page says so.
    }
    return known
  }

  /// Asks siwa-accounts for the deletion. Nothing is deleted here: the data eraser comes for it.
  private func delete(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let (secret, visit) = await ownVisit(of: request) else {
      return Self.refusal("That form was not of your visit.")
    }
    if visit.state == .open, let deletion = try await accounts.delete(visit.account) {
      visits.update(secret) { $0.take(.deletionAsked(id: deletion.id)) }
    }
    return .seeOther("/")
  }

  private func signOut(_ request: HTTPRequest) async -> HTTPResponse {
    guard let (secret, _) = await ownVisit(of: request) else { return Self.refusal("That form was not of your visit.") }
    visits.forget(secret)
    return .seeOther("/", cookies: ["\(Self.visitCookie)=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"])
  }

  /// The visit of the browser that sent a form, where the form comes from the shop's own page: another site's does not know
  /// its token.
  private func ownVisit(of request: HTTPRequest) async -> (secret: String, visit: Visit)? {
    guard let secret = request.cookie(Self.visitCookie), let form = await FormFields(of: request),
      let visit = visits.value(of: secret, at: .now), visit.formToken.isSecret(form["token"])
    else { return nil }
    return (secret, visit)
  }

  private static func refusal(_ words: String) -> HTTPResponse {
    ShopPage(body: ShopPage.front("\(words)")).response(status: 400)
  }
}

extension HTTPResponse {
  /// Has the browser get another page.
  fileprivate static func seeOther(_ address: String, cookies: [String] = []) -> HTTPResponse {
    HTTPResponse(
      status: 303,
      headers: [("Location", address), ("Cache-Control", "no-store")] + cookies.map { ("Set-Cookie", $0) })
  }
}

extension String {
  /// As a query has it: all but unreserved characters in their escapes (RFC 3986 §2.3).
  fileprivate var percentEncoded: String {
    let digits = Array("0123456789ABCDEF")
    var result = ""
    for byte in utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: result.unicodeScalars.append(.init(byte))
      default: result += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
      }
    }
    return result
  }
}
