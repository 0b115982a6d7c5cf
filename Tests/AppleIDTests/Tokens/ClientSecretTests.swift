import AccountEvents
import Cryptography
import EventLoop
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import AppleID

@Loop @Suite struct ClientSecretTests {
  nonisolated static let key = Forge.make { () throws -> TeamKey in
    TeamKey(team: Forge.team, id: try #require(KeyID("ABC123DEFG")), privateKey: try P256PrivateKey())
  }

  private func secret(lifetime: Duration = .seconds(3600)) throws -> ClientSecret {
    try ClientSecret(
      for: Forge.app, by: Self.key, audience: "https://appleid.apple.com", at: Forge.now, lifetime: lifetime)
  }

  @Test func saysWhatAppleWantsToHear() throws {
    let secret = try secret()
    let parts = secret.text.split(separator: ".").map { String($0) }
    try #require(parts.count == 3)
    let now = Forge.issue + 60
    #expect(
      String(decoding: Base64URL.decode(parts[0]) ?? [], as: UTF8.self) == #"{"alg":"ES256","kid":"ABC123DEFG"}"#)
    #expect(
      String(decoding: Base64URL.decode(parts[1]) ?? [], as: UTF8.self)
        == #"{"iss":"A1B2C3D4E5","iat":\#(now),"exp":\#(now + 3600),"aud":"https://appleid.apple.com","#
        + #""sub":"com.example.app"}"#)
    let signature = try #require(Base64URL.decode(parts[2]))
    #expect(signature.count == 64)
    #expect(try Self.key.privateKey.publicKey.verifiesES256(signature, of: Array("\(parts[0]).\(parts[1])".utf8)))
    #expect(secret.expiresAt - Forge.now == .seconds(3600))
  }

  @Test(Python.isThere, arguments: [Duration.seconds(300), ClientSecret.longestLifetime])
  func anotherImplementationBelievesIt(lifetime: Duration) async throws {
    let secret = try secret(lifetime: lifetime)
    let run = try await Python.run(
      "Tests/AppleIDTests/Python/client-secret.py", [secret.text, "com.example.app", "A1B2C3D4E5"],
      input: Array(try Self.key.privateKey.pem().utf8))
    #expect(run.end == .exit(0), "\(run.errors)")
    #expect(String(decoding: run.output, as: UTF8.self) == "ABC123DEFG \(lifetime.components.seconds)\n")
  }

  @Test func isNowhereToBeSeen() throws {
    let secret = try secret()
    var dumped = ""
    dump(secret, to: &dumped)
    dump([secret.text.count: (Forge.app, [secret])], to: &dumped)
    for text in ["\(secret)", String(reflecting: secret), "\([secret])", dumped] {
      #expect(!text.contains(secret.text.prefix(20)))
    }
  }

  @Test func isKeptForEachClientAndRenewedBeforeItEnds() throws {
    let time = Mutex(Forge.now)
    let secrets = ClientSecrets(
      keys: [Forge.app: Self.key, Forge.web: Self.key], audience: "a", lifetime: .seconds(1000),
      now: { time.withLock { $0 } })
    func secret(after seconds: Int64, of client: ClientID = Forge.app) throws -> ClientSecret {
      time.withLock { $0 = Forge.now + .seconds(seconds) }
      return try secrets.secret(of: client)
    }
    let first = try secret(after: 0)
    #expect(try secret(after: 0, of: Forge.web) != first)
    #expect(try secret(after: 799) == first)
    let second = try secret(after: 800)
    #expect(second != first)
    #expect(second.expiresAt == Forge.now + .seconds(1800))
    #expect(try secret(after: 801) == second)
    // The clock was set back: Apple would find the secret issued in the future.
    let third = try secret(after: 10)
    #expect(third.issuedAt == Forge.now + .seconds(10))
    secrets.discard(third, of: Forge.app)
    let fourth = try secret(after: 10)
    #expect(fourth != third)
    // What a request was refused with that took longer than another.
    secrets.discard(third, of: Forge.app)
    #expect(try secret(after: 10) == fourth)
    #expect { try secret(after: 0, of: Forge.otherApp) } throws: {
      ($0 as? AppleTokenError)?.code == .noKey
    }
  }
}
