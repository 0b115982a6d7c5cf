import AccountEvents
import AppleID
import AppleSimulator
import Cryptography
import EventLoop
import Glibc
import HTTPClient
import HTTPServer

/// People who sign in with a simulated Apple, ahead of time, so that what Apple signs takes nothing from what is measured;
/// then Apple, which answers at once.
///
/// Arguments: how many, the team, its app, and a folder with `certificate.pem` and `key.pem`. The folder gets the team's
/// `key.p8`, and `sign-ins` with the body of a request to `siwa-accounts` a line. Prints the key's id and the addresses of
/// keys, tokens and revocations, and serves them until it is killed.
@main struct PeopleProgram {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 5, let count = Int(arguments[1]) else { exit(2) }
    exit(Loop.run { await run(count, team: arguments[2], app: arguments[3], folder: arguments[4]) })
  }

  @Loop static func run(_ count: Int, team: String, app: String, folder: String) async -> Int32 {
    do {
      let apple = try SimulatedApple(
        ring: KeyRing(generating: 3), issuer: AppleNotification.appleIssuer, trustAnchors: .system,
        clock: { Timestamp.now })
      let tls = TLSServerConfiguration(
        certificateFile: "\(folder)/certificate.pem", privateKeyFile: "\(folder)/key.pem")
      let server = try SimulatedAppleServer(apple, port: 0, tls: tls)
      let key = try apple.enroll(team: team, clients: [app])
      try write(key.privateKeyPEM, to: "\(folder)/key.p8")
      let serving = Task(executorPreference: Loop.executor) { await server.run() }
      let endpoints = try endpoints(server, key, team: team, app: app, folder: folder)
      var lines = ""
      for number in 0..<count {
        lines += try await signIn(Person(named: "person \(number)"), to: app, apple, endpoints) + "\n"
      }
      try write(lines, to: "\(folder)/sign-ins")
      print(key.id, server.keysURL, server.tokenURL, server.revocationURL)
      fflush(nil)
      await serving.value
      return 0
    } catch {
      print(error)
      return 1
    }
  }

  /// The request of an application for somebody: an identity token as Apple signs it, and a code that nobody has used.
  @Loop static func signIn(
    _ person: Person, to app: String, _ apple: SimulatedApple, _ endpoints: AppleTokenEndpoints
  ) async throws -> String {
    guard let code = AuthorizationCode(try apple.signIn(person, to: app)), let client = ClientID(app),
      case .granted(let tokens) = try await endpoints.exchange(code, redirectURI: nil, by: client),
      let token = tokens.identityToken
    else { throw SystemError(code: EINVAL) }
    let unused = try apple.signIn(person, to: app)
    return #"{"identityToken":"\#(token.text)","authorizationCode":"\#(unused)","clientId":"\#(app)"}"#
  }

  @Loop static func endpoints(
    _ server: SimulatedAppleServer, _ key: DeveloperKey, team: String, app: String, folder: String
  ) throws -> AppleTokenEndpoints {
    guard let client = ClientID(app), let team = TeamID(team), let id = KeyID(key.id),
      let token = HTTPClientURL(server.tokenURL), let revocation = HTTPClientURL(server.revocationURL)
    else { throw SystemError(code: EINVAL) }
    let teamKey = TeamKey(team: team, id: id, privateKey: try P256PrivateKey(pem: key.privateKeyPEM))
    return AppleTokenEndpoints(
      token: token, revocation: revocation,
      client: HTTPClient(
        HTTPClientConfiguration(
          userAgent: "people", trustAnchors: .systemAnd(file: "\(folder)/certificate.pem"), proxy: .none,
          connectTimeout: .seconds(10), maximumConnections: 1, maximumRequests: 1)),
      secrets: ClientSecrets(
        keys: [client: teamKey], audience: AppleNotification.appleIssuer, lifetime: .seconds(3600), now: { .now }),
      deadline: .seconds(30))
  }

  /// Writes a file that nobody else may read.
  static func write(_ text: String, to path: String) throws {
    umask(0o077)
    guard let file = unsafe fopen(path, "w") else { throw SystemError.current }
    defer { unsafe fclose(file) }
    let bytes = Array(text.utf8)
    guard unsafe fwrite(bytes, 1, bytes.count, file) == bytes.count else { throw SystemError.current }
  }
}
