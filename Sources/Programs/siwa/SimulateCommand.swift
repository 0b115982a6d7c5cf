import AccountEvents
import AppleSimulator
import Configuration
import Cryptography
import EventLoop
import Glibc
import HTTPClient
import HTTPServer

/// `siwa simulate`: Apple's side by itself.
struct SimulateCommand: Command {
  static let name = "simulate"
  static let summary = "Runs the simulated Apple by itself: keys and tokens, and whatever it is told to sign."
  static let details = """
    A fake, for rehearsals: point apple.keys of the ingress to it and apple.trusted-ca to its certificate, and have it
    sign with 'siwa notify'. It listens on loopback only: whoever reaches it can have anything signed. What goes wrong on
    request: POST {"answer":"html"} to /simulator/keys, POST {} to /simulator/keys/rotate; answers are
    \(KeysAnswer.allCases.map(\.rawValue).joined(separator: ", ")).

    Its token endpoints, apple.token and apple.revoke, believe the teams that were made known to it, and give tokens for
    the code of a sign-in. A revocation ends all of the person's tokens for the app, and is told to the receiver:
      POST {"team":"A1B2C3D4E5","audiences":["com.example.app"],"to":"https://…"} to /simulator/team
      POST {"user":"ada","audience":"com.example.app"} to /simulator/sign-in
    The first answers with the team's key, a new one each time, the second with the code. POST {"key_id":"ABC123DEFG"} to
    /simulator/team/withdraw-key takes a key of a team's away. What goes wrong on request: POST
    {"answer":"lost","delay_ms":500} to /simulator/tokens or /simulator/revocations; answers are
    \(TokensAnswer.allCases.map(\.rawValue).joined(separator: ", ")). POST {} to /simulator/asked says how
    often each endpoint was asked.

    Its migration endpoint, apple.migration, moves the users of an app from one team to another, for both teams. From the
    acceptance on the app is the target's, and for 60 days both can ask; a day is a day of this machine's clock.
      POST {"audience":"com.example.app","team":"A1B2C3D4E5","target":"Z9Y8X7W6V5"} to /simulator/transfer, with
           "accepted_days_ago":0 once the target has accepted the app
      POST {"audience":"com.example.app"} to /simulator/populate: whoever has the form of a subject is a user of the app
      POST {"user":"ada","audience":"com.example.app"} to /simulator/withdraw-consent
      POST {} to /simulator/team/end-tokens: the access tokens of all teams are over
    What goes wrong on request: POST {"answer":"throttled","delay_ms":50} to /simulator/migrations.

    For browsers there are two pages, which take forms of their own site alone:
      /auth/authorize  Where apps send people who sign in, with client_id, redirect_uri, response_type, response_mode, scope,
                       state and nonce. Anybody is whoever they say they are.
      /account         Where people turn forwarding off or on, stop using an app, or delete their Apple Account. The
                       team's receiver is told.
    A redirect_uri has to be one that was made known with the team, byte for byte, in "redirect_uris":["https://…"]: https
    without a fragment, or http on loopback. What asks for name or e-mail has to ask for response_mode=form_post.

    """
  static let examples = [
    CommandExample("siwa simulate --port 8444 --folder ./rehearsal", "Puts certificate.pem into the folder and serves.")
  ]

  let port: Int
  let folder: String
  let trust: String?

  init(reading arguments: inout CommandArguments) {
    port = arguments.read("--port", "NUMBER", .integer(0...65_535), default: 8444, "The port; 0 for any free one.")
    folder = arguments.read(
      "--folder", "FOLDER", .path, "Where certificate.pem and key.pem are; they are made where they are missing.")
    trust = arguments.readIfPresent("--trust", "FILE", .path, "PEM file with the certificate of the receivers.")
  }

  func run() async -> ExitCode { await serve() }

  @Loop
  private func serve() async -> ExitCode {
    do {
      let tls = try certificate()
      let apple = SimulatedApple(
        ring: try KeyRing(generating: 2), issuer: AppleNotification.appleIssuer,
        trustAnchors: .systemAnd(file: trust ?? tls.certificateFile), clock: { Timestamp.now })
      let server = try SimulatedAppleServer(apple, port: UInt16(port), tls: tls)
      Terminal.say("Apple (simulated)  \(server.keysURL)")
      Terminal.say("                   \(server.tokenURL)")
      Terminal.say("                   \(server.revocationURL)")
      Terminal.say("                   \(server.migrationURL)")
      Terminal.say("Trust anchor       \(tls.certificateFile)")
      let signals = try Signals([SIGINT, SIGTERM])
      await withTaskGroup { group in
        group.addTask(executorPreference: Loop.executor) { await server.run() }
        _ = await signals.next()
        group.cancelAll()
      }
      return .success
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }

  private func certificate() throws -> TLSServerConfiguration {
    let tls = TLSServerConfiguration(certificateFile: "\(folder)/certificate.pem", privateKeyFile: "\(folder)/key.pem")
    if unsafe access(tls.certificateFile, F_OK) == 0 { return tls }
    guard unsafe mkdir(folder, 0o700) == 0 || errno == EEXIST else {
      throw UnusableFolder(path: folder, cause: .current)
    }
    let made = try SelfSignedCertificate(
      for: ["localhost", "127.0.0.1", "::1"], validFrom: Timestamp.now.milliseconds / 1000 - 3600, seconds: 365 * 86_400
    )
    try DurableFile(path: tls.certificateFile).create(with: Array(made.certificatePEM.utf8))
    try DurableFile(path: tls.privateKeyFile).create(with: Array(made.privateKeyPEM.utf8))
    return tls
  }
}

/// The folder of `--folder` can neither be used nor made.
private struct UnusableFolder: Error, CustomStringConvertible {
  let path: String
  let cause: SystemError
  var description: String { "--folder \(path): \(cause)" }
}
