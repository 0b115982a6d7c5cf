import AccountEvents
import EventLoop
import HTTPClient
import JSON

/// What the shop asks of siwa-accounts, as an application in any language would: HTTP and JSON, as
/// schemas/accounts.openapi.yaml has them.
@Loop
final class AccountsClient {
  /// Somebody has signed in.
  struct SignedIn: Sendable {
    let account: String
    let isNew: Bool
    let subject: AppleSubject
    let at: Timestamp
    let email: String?
    let isRelayed: Bool
  }

  /// What comes of a sign-in.
  enum SignInAnswer: Sendable {
    case signedIn(SignedIn)
    /// Only a new sign-in helps.
    case beginAgain
    /// The problem's title.
    case refused(String)
  }

  /// What is known of an account.
  struct Account: Sendable {
    /// `authorized`, `no-authorization`.
    let state: String
    /// Whether mail reaches the person: `enabled`, `disabled`, `unknown`, `erased`.
    let relay: String
    let mayMail: Bool
  }

  /// A deletion on its way.
  struct Deletion: Sendable {
    struct Step: Sendable {
      let name: String
      let state: String
      let at: String?
    }

    let id: String
    let state: String
    let steps: [Step]
    /// What the person has to do, where the shop could not end the authorization at Apple for them.
    let endByHand: (words: String, url: String)?
    /// How an operator gets the proof of it, once there is one.
    let proof: String?
  }

  /// It does not answer, or not as it is described.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The code of a sign-in is good for five minutes; a person at a browser does not wait as long.
  private static let attempts = 4
  private static let longestPause = 5
  private static let deadline = Duration.seconds(20)
  private static let limits = JSONLimits(bytes: 65_536, depth: 8, members: 256)

  private let origin: String
  private let token: String
  private let client: HTTPClient

  /// A client for the service at `origin`, `https://…`, to which it shows `token`.
  init(_ origin: String, token: String, trusting anchors: HTTPClientConfiguration.TrustAnchors) {
    (self.origin, self.token) = (origin, token)
    client = HTTPClient(
      HTTPClientConfiguration(
        userAgent: "siwa-shop", trustAnchors: anchors, proxy: .none, connectTimeout: .seconds(5), maximumConnections: 8,
        maximumRequests: 64))
  }

  /// Ends what is on its way.
  func close() { client.close() }

  /// Hands over what Apple gave for a sign-in. `key` is the sign-in's own: where no answer comes, the same is asked with the
  /// same key, and the code is sent to Apple once.
  func signIn(
    identityToken: String, code: String, nonce: String, client id: String, redirectURI: String, key: String
  ) async throws -> SignInAnswer {
    let body: JSONValue = [
      "identityToken": .string(identityToken), "authorizationCode": .string(code), "nonce": .string(nonce),
      "clientId": .string(id), "redirectUri": .string(redirectURI),
    ]
    let request = HTTPClientRequest.post(
      body.bytes, to: try url("/v1/sign-ins"),
      headers: headers + [("Content-Type", "application/json"), ("Idempotency-Key", key)], isRepeatable: true,
      within: Self.deadline, maximumBodySize: Self.limits.bytes)
    for attempt in 1...Self.attempts {
      let answer: HTTPClientResponse
      do throws(HTTPClientError) { answer = try await client.send(request) } catch {
        if attempt == Self.attempts || !error.isRetriable { throw error }
        continue
      }
      switch answer.status {
      case 200: return .signedIn(try SignedIn(try read(answer)))
      case 409: return .beginAgain
      case 429, 503:
        let pause = answer.header("Retry-After").flatMap { Int($0) } ?? 1
        if attempt < Self.attempts { try await Loop.sleep(for: .seconds(min(max(pause, 1), Self.longestPause))) }
      default: return .refused(try read(answer)["title"]?.text ?? "\(answer.status)")
      }
    }
    throw Failure(description: "siwa-accounts is not available")
  }

  /// What is known of an account; nil where it is gone.
  func account(_ id: String) async throws -> Account? {
    try await get("/v1/accounts/\(id)").map { try Account($0) }
  }

  /// Asks for the deletion of an account: as often as one likes, there is one. Nil where the account is gone.
  func delete(_ id: String) async throws -> Deletion? {
    let answer = try await client.send(
      .delete(
        try url("/v1/accounts/\(id)"), headers: headers, isRepeatable: true, within: Self.deadline,
        maximumBodySize: Self.limits.bytes))
    switch answer.status {
    case 202: return try Deletion(try read(answer))
    case 404: return nil
    default: throw Failure(description: "siwa-accounts answers \(answer.status)")
    }
  }

  /// How far a deletion is; nil where it is not known any more.
  func deletion(_ id: String) async throws -> Deletion? {
    try await get("/v1/deletions/\(id)").map { try Deletion($0) }
  }

  private var headers: [(name: String, value: String)] { [("Authorization", "Bearer \(token)")] }

  private func get(_ path: String) async throws -> JSONValue? {
    let answer = try await client.send(
      .get(try url(path), headers: headers, within: Self.deadline, maximumBodySize: Self.limits.bytes))
    switch answer.status {
    case 200: return try read(answer)
    case 404: return nil
    default: throw Failure(description: "siwa-accounts answers \(answer.status)")
    }
  }

  private func url(_ path: String) throws -> HTTPClientURL {
    guard let url = HTTPClientURL(origin + path) else { throw Failure(description: "no address: \(path)") }
    return url
  }

  private func read(_ answer: HTTPClientResponse) throws(JSONError) -> JSONValue {
    try JSONValue(decoding: answer.body, Self.limits)
  }
}

// MARK: What it answers

extension JSONValue {
  /// The text of a member that has to be there.
  fileprivate func required(_ name: String) throws(AccountsClient.Failure) -> String {
    guard let text = self[name]?.text else { throw AccountsClient.Failure(description: "an answer without \(name)") }
    return text
  }

  fileprivate func isTrue(_ name: String) -> Bool { self[name] == .boolean(true) }
}

extension AccountsClient.SignedIn {
  fileprivate init(_ answer: JSONValue) throws(AccountsClient.Failure) {
    guard let account = answer["account"], let subject = AppleSubject(try answer.required("sub")),
      let time = Timestamp(rfc3339: try answer.required("signedInAt"))
    else { throw AccountsClient.Failure(description: "an answer that is no sign-in") }
    self.init(
      account: try account.required("id"), isNew: account.isTrue("isNew"), subject: subject, at: time,
      email: answer["email"]?["address"]?.text, isRelayed: answer["email"]?.isTrue("isPrivate") == true)
  }
}

extension AccountsClient.Account {
  fileprivate init(_ answer: JSONValue) throws(AccountsClient.Failure) {
    guard let relay = answer["relay"] else { throw AccountsClient.Failure(description: "an answer without relay") }
    self.init(
      state: try answer.required("state"), relay: try relay.required("status"), mayMail: relay.isTrue("maySend"))
  }
}

extension AccountsClient.Deletion {
  fileprivate init(_ answer: JSONValue) throws(AccountsClient.Failure) {
    guard case .array(let steps) = answer["steps"] else {
      throw AccountsClient.Failure(description: "an answer without steps")
    }
    var read: [Step] = []
    for step in steps {
      read.append(Step(name: try step.required("name"), state: try step.required("state"), at: step["at"]?.text))
    }
    var byHand: (words: String, url: String)?
    if let end = answer["endByHand"], end != .null { byHand = (try end.required("text"), try end.required("url")) }
    self.init(
      id: try answer.required("id"), state: try answer.required("state"), steps: read, endByHand: byHand,
      proof: answer["receipt"]?["command"]?.text)
  }
}
