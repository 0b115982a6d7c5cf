import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import Testing

@Loop @Suite struct KeysEndpointTests {
  private func keys(_ response: HTTPClientResponse) throws -> [[String: String]] {
    try #require(try jsonObject(response.body)["keys"] as? [[String: String]])
  }

  @Test func servesTheKeysThatSign() async throws {
    try await Rehearsal.run { rehearsal in
      let set = try keys(try await rehearsal.get("/auth/keys"))
      #expect(Set(set.compactMap { $0["kid"] }) == Set(rehearsal.apple.ring.keys.map(\.kid)))
      for _ in rehearsal.apple.ring.keys {
        let signed = try rehearsal.apple.sign(.consentRevoked, of: Person(named: "Ada"), for: "com.example.app")
        let parts = signed.jws.split(separator: ".")
        let kid = try jsonObject(try #require(Base64URL.decode(String(parts[0]))))["kid"] as? String
        let jwk = try #require(set.first { $0["kid"] == kid })
        #expect(jwk["kty"] == "RSA" && jwk["use"] == "sig" && jwk["alg"] == "RS256" && jwk["e"] == "AQAB")
        let key = try RSAPublicKey(
          modulus: try #require(Base64URL.decode(jwk["n"] ?? "")), exponent: [1, 0, 1])
        #expect(
          key.verifiesRS256(
            try #require(Base64URL.decode(String(parts[2]))), of: [UInt8]("\(parts[0]).\(parts[1])".utf8)))
      }
    }
  }

  @Test func keepsNoOrderAmongItsKeys() async throws {
    try await Rehearsal.run { rehearsal in
      let first = try keys(try await rehearsal.get("/auth/keys"))
      let second = try keys(try await rehearsal.get("/auth/keys"))
      #expect(first != second)
      #expect(Set(first) == Set(second))
      #expect(rehearsal.apple.keysAsked == 2)
    }
  }

  @Test func replacesOneKeyAtATime() async throws {
    try await Rehearsal.run { rehearsal in
      let before = rehearsal.apple.ring.keys.map(\.kid)
      let kid = try rehearsal.apple.rotateKeys()
      #expect(rehearsal.apple.ring.keys.map(\.kid) == before.dropFirst() + [kid])
      #expect(
        Set(try keys(try await rehearsal.get("/auth/keys")).compactMap { $0["kid"] }) == Set(before.dropFirst() + [kid])
      )
      #expect(rehearsal.apple.ring.keys.allSatisfy { 6...10 ~= $0.kid.count })
    }
  }

  /// What each answer of the keys endpoint is, as its client sees it.
  @Test func answersForItsKeysAsItIsTold() async throws {
    try await Rehearsal.run { rehearsal in
      for answer in KeysAnswer.allCases where answer != .silence && answer != .drip {
        rehearsal.apple.keysAnswer = answer
        let response = try await rehearsal.get("/auth/keys")
        switch answer {
        case .unavailable:
          #expect(response.status == 503)
          #expect(response.header("Content-Type") == "text/html")
        case .html:
          #expect(response.status == 200)
          #expect(response.header("Content-Type") == "text/html")
        case .redirect:
          #expect(response.status == 302)
          #expect(response.header("Location") == "/auth/keys")
        case .tenMegabytes: #expect(response.body.count > 10_000_000)
        case .cutOff, .garbage: #expect(throws: (any Error).self) { try keys(response) }
        case .silence, .drip: Issue.record("it was told to be silent")
        default: #expect(Self.holds(answer, try keys(response)))
        }
      }
    }
  }

  private static func holds(_ answer: KeysAnswer, _ set: [[String: String]]) -> Bool {
    switch answer {
    case .keys, .otherType: set.count == 3
    case .keyGone: set.count == 2
    case .otherKey: Set(set.map { $0["n"] }).count == 3
    case .none: set.isEmpty
    case .kidTwice: set.count == 4 && Set(set.map { $0["kid"] }).count == 3
    case .shortKey: set.contains { Base64URL.decode($0["n"] ?? "")?.count == 128 }
    case .smallExponent: set.contains { $0["e"] == "Aw" }
    case .foreignKeys: set.count == 6 && Set(set.map { $0["alg"] }) == ["RS256", "ES256", "RSA-OAEP-256", "PS256"]
    case .malformedKey: set.contains { $0["n"] == "=====" }
    case .unavailable, .html, .redirect, .tenMegabytes, .silence, .drip, .cutOff, .garbage: false
    }
  }

  @Test(arguments: [KeysAnswer.silence, .drip])
  func saysNothingOrNotAllWhenItIsToldSo(answer: KeysAnswer) async throws {
    try await Rehearsal.run { rehearsal in
      rehearsal.apple.keysAnswer = answer
      await #expect {
        try await rehearsal.get("/auth/keys", within: .milliseconds(100))
      } throws: {
        ($0 as? HTTPClientError)?.code == .deadline
      }
    }
  }
}
