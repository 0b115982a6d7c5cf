import AccountEvents
import AppleID
import Foundation
import JSON
import TestSupport
import Testing

/// Tokens of another implementation: what it signs is believed, and nothing that is not in order.
@Suite(Python.isThere) struct OtherIssuerTests {
  private struct Issued: Decodable {
    struct Keys: Codable {
      let keys: [[String: String]]
    }
    let keys: Keys
    let token: String
    let wrong: [String: String]
    let other: [String]
  }

  @Test func aTokenOfAnotherImplementationIsJudgedAlike() async throws {
    let run = try await Python.run(
      "Tests/AppleIDTests/Python/identity-token.py",
      ["https://appleid.apple.com", Forge.app.text, SignedIn.nonce, String(Forge.issue)])
    try #require(run.end == .exit(0), "\(run.errors)")
    let issued = try JSONDecoder().decode(Issued.self, from: Data(run.output))
    let set = [UInt8](try JSONEncoder().encode(issued.keys))
    let keys = try unsafe AppleKeySet(reading: set.span.bytes)
    let token = try #require(try SignedIn.verify(issued.token, keys: keys).token)
    #expect(token.email?.address == Forge.address("ada@example.com") && token.email?.isVerified == true)
    for (reason, jws) in issued.wrong {
      #expect(try SignedIn.verify(jws, keys: keys).refusal?.rawValue == reason)
    }
    for jws in issued.other {
      // The one that nobody signed has no signature at all.
      let refusal: IdentityTokenRefusal = jws.hasSuffix(".") ? .malformedToken : .wrongAlgorithm
      #expect(try SignedIn.verify(jws, keys: keys).refusal == refusal)
    }
  }
}
