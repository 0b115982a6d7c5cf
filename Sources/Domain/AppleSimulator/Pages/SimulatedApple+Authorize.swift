import Cryptography
import HTTPServer

// The page on which a person signs in to an app, in a browser.
extension SimulatedApple {
  /// `GET /auth/authorize` shows the page, `POST /auth/authorize` is what the person makes of it.
  func authorizationResponse(_ request: HTTPRequest) async -> HTTPResponse {
    do throws(AuthorizationRefusal) {
      if request.hasMethod("GET") {
        let fields = try Self.fields([UInt8]((request.query ?? "").utf8))
        return Self.page(for: try AuthorizationRequest(fields, of: developers), fields).response()
      }
      guard request.hasMethod("POST") else { return HTTPResponse(status: 405, headers: [("Allow", "GET, POST")]) }
      guard let body = await request.form() else { return HTTPResponse(status: 400) }
      let fields = try Self.fields(body)
      let asked = try AuthorizationRequest(fields, of: developers)
      switch fields["decision"].flatMap(SignInForm.Decision.init) {
      case .cancel: return Self.sendBack([("error", "user_cancelled_authorize")], asked)
      case .proceed:
        guard let form = SignInForm(fields, for: asked) else {
          return Self.page(for: asked, fields, fault: "An Apple Account is an e-mail address.").response(status: 400)
        }
        do {
          return Self.sendBack(try signIn(form, asked), asked)
        } catch {
          return HTTPResponse(status: 503)  // OpenSSL gives no random bytes
        }
      case nil: throw AuthorizationRefusal(error: "invalid_request", words: "Neither continue nor cancel.")
      }
    } catch {
      return Page(
        title: "Sign in with Apple",
        body: "<p class=\"fault\"><code>\(escaped(error.error))</code>: \(escaped(error.words))</p>"
      ).response(status: 400)
    }
  }

  /// The parameters for the app: `user` comes with the first sign-in alone, and the choice of then stays.
  private func signIn(
    _ form: SignInForm, _ request: AuthorizationRequest
  ) throws(CryptographyError) -> [(String, String)] {
    let isFirst = authorizations.consent(of: form.person, to: request.client) == nil
    let code = try authorizations.signIn(
      form.person, to: request.client, redirectURI: request.redirectURI, nonce: request.nonce, at: clock())
    let person = authorizations.consent(of: form.person, to: request.client)?.person ?? form.person
    var parameters = [("code", code)]
    if request.wantsIdentity {
      let token = try identityToken(
        of: person, for: request.client, nonce: request.nonce, binding: ("c_hash", code))
      parameters.append(("id_token", token))
    }
    if isFirst, request.wantsName || request.wantsAddress {
      var user = Members([:])
      if request.wantsName {
        let name = Members(["firstName": quoted(form.firstName), "lastName": quoted(form.lastName)])
        user["name"] = name.json
      }
      if request.wantsAddress { user["email"] = quoted(known(person, to: request.client).address) }
      parameters.append(("user", user.json))
    }
    return parameters
  }

  private static func page(
    for request: AuthorizationRequest, _ fields: FormFields, fault: String? = nil
  ) -> Page {
    let carried = AuthorizationRequest.names.compactMap { name in fields[name].map { hiddenField(name, $0) } }
    let names = """
      <label>First name <input name="first_name" maxlength="60" autocomplete="off"></label>
      <label>Last name <input name="last_name" maxlength="60" autocomplete="off"></label>
      """
    let address = """
      <fieldset><legend>E-mail</legend>
      <label><input type="radio" name="address" value="share" checked> Share my e-mail</label>
      <label><input type="radio" name="address" value="hide"> Hide my e-mail</label></fieldset>
      """
    return Page(
      title: "Sign in with Apple",
      body: """
        <p>Use your Apple Account to sign in to <strong>\(escaped(request.client))</strong>.</p>
        \(fault.map { "<p class=\"fault\">\(escaped($0))</p>" } ?? "")
        <form method="post" action="/auth/authorize">\(carried.joined())
        <label>Apple Account <input type="email" name="account" required autocomplete="off"></label>
        \(request.wantsName ? names : "")
        \(request.wantsAddress ? address : "")
        <button name="decision" value="continue">Continue</button>
        <button name="decision" value="cancel" formnovalidate>Cancel</button></form>
        """)
  }

  /// Has the browser bring the parameters to the app, in the way that it asked for.
  private static func sendBack(_ parameters: [(String, String)], _ request: AuthorizationRequest) -> HTTPResponse {
    let parameters = (request.state.map { [("state", $0)] } ?? []) + parameters
    let encoded = parameters.map { "\(percentEncoded($0))=\(percentEncoded($1))" }.joined(separator: "&")
    let address = request.redirectURI
    switch request.mode {
    case .query: return .redirect(to: "\(address)\(address.contains("?") ? "&" : "?")\(encoded)")
    case .fragment: return .redirect(to: "\(address)#\(encoded)")
    case .formPost:
      let fields = parameters.map { hiddenField($0, $1) }.joined()
      return Page(
        title: "Sign in with Apple",
        body: """
          <form method="post" action="\(escaped(address))">\(fields)<noscript><button>Continue</button></noscript></form>
          """, sendsItself: true
      ).response()
    }
  }

  private static func fields(_ bytes: [UInt8]) throws(AuthorizationRefusal) -> FormFields {
    guard let fields = FormFields(bytes) else {
      throw AuthorizationRefusal(error: "invalid_request", words: "A parameter comes twice, or is not well-formed.")
    }
    return fields
  }
}

extension HTTPRequest {
  /// The body of a form that a browser sends; nil for anything else.
  func form() async -> [UInt8]? {
    guard (header("Content-Type") ?? "").lowercased().hasPrefix("application/x-www-form-urlencoded"),
      case .complete = await readBody(upTo: 65_536)
    else { return nil }
    return withBody { body in unsafe body.withUnsafeBytes { unsafe [UInt8]($0) } }
  }
}

extension HTTPResponse {
  /// Has the browser get another page. The address holds no line break.
  static func redirect(to address: String) -> HTTPResponse {
    HTTPResponse(status: 303, headers: [("Location", address), ("Cache-Control", "no-store")])
  }
}
