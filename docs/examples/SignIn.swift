// Signs somebody in with Apple by way of siwa-accounts, with nothing but Foundation.
//
// `begin` belongs where your pages link to "Sign in with Apple", `finish` where Apple's page posts its form to.
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

let environment = ProcessInfo.processInfo.environment

/// What to keep of a browser: in a cookie SameSite=None; Secure.
struct Session {
  let state = secret(), nonce = secret(), key = secret()
}

func secret() -> String {
  var generator = SystemRandomNumberGenerator()
  return (0..<4).map { _ in String(generator.next(), radix: 36) }.joined()
}

/// Where to send the browser.
func begin(_ session: Session) -> String {
  var components = URLComponents(
    string: environment["APPLE_AUTHORIZE"] ?? "https://appleid.apple.com/auth/authorize")!
  components.queryItems = [
    URLQueryItem(name: "client_id", value: environment["CLIENT_ID"]),
    URLQueryItem(name: "redirect_uri", value: environment["REDIRECT_URI"]),
    URLQueryItem(name: "response_type", value: "code id_token"), URLQueryItem(name: "response_mode", value: "form_post"),
    URLQueryItem(name: "scope", value: "name email"), URLQueryItem(name: "state", value: session.state),
    URLQueryItem(name: "nonce", value: session.nonce),
  ]
  return components.string!
}

struct SignedIn: Decodable {
  struct Account: Decodable { let id: String, isNew: Bool }
  let account: Account
}

/// RFC 9457.
struct Problem: Decodable, Error { let type: String, detail: String? }

struct ForeignAnswer: Error {}

/// Who has signed in, by the form that Apple's page has posted; nil where they have to begin again.
func finish(_ session: Session, _ body: String) async throws -> SignedIn? {
  var components = URLComponents()
  components.percentEncodedQuery = body.replacingOccurrences(of: "+", with: "%20")
  let form = Dictionary(
    (components.queryItems ?? []).map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { first, _ in first })
  guard let state = form["state"], isSame(state, session.state) else { throw ForeignAnswer() }
  guard form["error"] == nil else { return nil }  // the person has cancelled
  // form["user"] has the name, once and never again: store it now, under the session's key.
  return try await signIn(
    session.key,
    [
      "identityToken": form["id_token"], "authorizationCode": form["code"], "nonce": session.nonce,
      "clientId": environment["CLIENT_ID"], "redirectUri": environment["REDIRECT_URI"],
    ].compactMapValues { $0 })
}

/// Compares all of both, wherever they differ.
func isSame(_ left: String, _ right: String) -> Bool {
  left.utf8.count == right.utf8.count && zip(left.utf8, right.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
}

/// `key` is the sign-in's own, and the same whenever this one is repeated.
func signIn(_ key: String, _ asked: [String: String]) async throws -> SignedIn? {
  var request = URLRequest(url: URL(string: environment["ACCOUNTS_URL"]! + "/v1/sign-ins")!, timeoutInterval: 70)
  request.httpMethod = "POST"
  request.httpBody = try JSONEncoder().encode(asked)
  request.setValue("Bearer \(environment["ACCOUNTS_TOKEN"]!)", forHTTPHeaderField: "Authorization")
  request.setValue("application/json", forHTTPHeaderField: "Content-Type")
  request.setValue(key, forHTTPHeaderField: "Idempotency-Key")
  var seconds = 0
  let end = ContinuousClock.now + .seconds(300)  // a code is good for five minutes
  for _ in 0..<5 {
    if ContinuousClock.now + .seconds(seconds) > end { return nil }  // the code would be too old
    try await Task.sleep(for: .seconds(seconds))
    let data: Data, response: URLResponse
    do {
      (data, response) = try await URLSession.shared.data(for: request)
    } catch is URLError {
      seconds = 1  // the connection was lost, and the answer with it: the same request gets the same one
      continue
    }
    guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
    if response.statusCode == 200 { return try JSONDecoder().decode(SignedIn.self, from: data) }
    if response.statusCode == 429 || response.statusCode == 503 {
      seconds = response.value(forHTTPHeaderField: "Retry-After").flatMap { Int($0) } ?? 5
      continue
    }
    let problem = try JSONDecoder().decode(Problem.self, from: data)
    if problem.type == "urn:siwa:problem:begin-again" { return nil }  // send the person to Apple once more
    throw problem
  }
  throw URLError(.cannotConnectToHost)
}

let session = Session()
print(begin(session))
fflush(stdout)
let person = try await finish(session, readLine() ?? "")
print(person?.account.id ?? "begin again")
