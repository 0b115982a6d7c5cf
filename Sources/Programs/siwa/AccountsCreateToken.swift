import Configuration
import Cryptography

/// `siwa accounts create-token`: what an application shows to `siwa-accounts`.
struct AccountsCreateToken: Command {
  static let name = "accounts create-token"
  static let summary = "Makes a bearer token for an application that asks siwa-accounts, and the digest of it."
  static let details = """
    The token is printed once and kept nowhere: it goes to the application, as a secret. Its SHA-256 goes into
    accounts.callers.CALLER.tokens, which takes two: add the new one, restart siwa-accounts, give the application the new
    token, and take the old one away.

    Exit codes: 0 made, 1 not made, 2 the command line makes no sense.

    """
  static let examples = [
    CommandExample("siwa accounts create-token", "Once for each application, and whenever a token is replaced.")
  ]

  private static let byteCount = 32

  init(reading arguments: inout CommandArguments) {}

  func run() async -> ExitCode {
    do {
      let token = "siwa_" + Base64URL.encode(try SecureRandom.bytes(Self.byteCount))
      Terminal.say("token   \(token)")
      Terminal.say("sha256  \(SHA256.digest(of: Array(token.utf8)))")
      return .success
    } catch {
      Terminal.complain("siwa: \(error)")
      return .failure
    }
  }
}
