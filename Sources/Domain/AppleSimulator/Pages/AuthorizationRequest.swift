import HTTPServer

/// What an app asks for when it sends a person to Apple: the parameters of `/auth/authorize`.
struct AuthorizationRequest {
  /// How the answer gets to the app.
  enum Mode: String { case query, fragment, formPost = "form_post" }

  /// The app.
  let client: String
  /// Where the answer goes.
  let redirectURI: String
  /// What the app wants back as it is.
  let state: String?
  /// What the app binds the identity token to.
  let nonce: String?
  /// Whether an identity token comes beside the code.
  let wantsIdentity: Bool
  /// Whether the app asks for the person's name, and for an address.
  let wantsName, wantsAddress: Bool
  /// How the answer gets to the app.
  let mode: Mode

  /// The longest `state` and `nonce` in bytes.
  static let longestText = 2048
  /// The parameters that it is made of, in the order in which a form carries them.
  static let names = [
    "client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce",
  ]

  /// Takes the parameters apart. What is wrong is told to the person: no address is to be believed by then.
  init(_ fields: FormFields, of developers: Developers) throws(AuthorizationRefusal) {
    guard let client = fields["client_id"], developers.team(of: client) != nil else {
      throw AuthorizationRefusal(error: "invalid_client", words: "Invalid client.")
    }
    guard let address = fields["redirect_uri"], developers.isRegistered(address, for: client) else {
      throw AuthorizationRefusal(error: "invalid_request", words: "Invalid web redirect url.")
    }
    let types = Self.words(fields["response_type"])
    guard types == ["code"] || types == ["code", "id_token"] else {
      throw AuthorizationRefusal(
        error: "unsupported_response_type", words: "response_type must be code, or code id_token.")
    }
    let scopes = Self.words(fields["scope"])
    guard scopes.isSubset(of: ["name", "email", "openid"]) else {
      throw AuthorizationRefusal(error: "invalid_scope", words: "scope may have name and email.")
    }
    wantsIdentity = types.count == 2
    (wantsName, wantsAddress) = (scopes.contains("name"), scopes.contains("email"))
    guard let mode = fields["response_mode"].map(Mode.init) ?? (wantsIdentity ? .fragment : .query) else {
      throw AuthorizationRefusal(error: "invalid_request", words: "response_mode is none that there is.")
    }
    guard mode == .formPost || !wantsName && !wantsAddress else {
      throw AuthorizationRefusal(
        error: "invalid_request", words: "response_mode must be form_post when name or email scope is requested.")
    }
    guard mode != .query || !wantsIdentity else {
      throw AuthorizationRefusal(
        error: "invalid_request", words: "response_mode must be fragment or form_post when id_token is requested.")
    }
    (state, nonce) = (fields["state"], fields["nonce"])
    guard [state, nonce].allSatisfy({ $0?.utf8.count ?? 0 <= Self.longestText }) else {
      throw AuthorizationRefusal(error: "invalid_request", words: "state and nonce are too long.")
    }
    (self.client, redirectURI, self.mode) = (client, address, mode)
  }

  private static func words(_ text: String?) -> Set<String> {
    Set((text ?? "").split(separator: " ").map(String.init))
  }
}

/// Why Apple does not even ask the person.
struct AuthorizationRefusal: Error {
  /// The error as OAuth 2.0 spells it.
  let error: String
  /// What the page says.
  let words: String
}
