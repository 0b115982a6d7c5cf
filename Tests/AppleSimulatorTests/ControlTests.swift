import AppleSimulator
import Cryptography
import EventLoop
import Foundation
import HTTPClient
import Testing

/// What the simulator can be told over HTTP.
@Loop @Suite struct ControlTests {
  @Test func deliversWhatItIsToldOverHTTP() async throws {
    try await Rehearsal.run { rehearsal in
      try await Receiver.run(answering: [503, 200]) { receiver, plan in
        let order = #"""
          {"type":"consent-revoked","user":"Ada","audience":"com.example.app","to":"\#(plan.receiver.text)",
           "faults":["events-object","audience-array"],"copies":2,"attempts":2,"comment":null}
          """#
        let response = try await rehearsal.post(order, to: "/simulator/notify")
        #expect(response.status == 200)
        let answer = try jsonObject(response.body)
        #expect(answer["attempts"] as? [String] == ["503", "200", "200"])
        #expect(answer["sub"] as? String == Person(named: "Ada").subject)
        #expect(receiver.bodies.count == 3)
        let body = try jsonObject(receiver.bodies[0])
        let claims = try jsonObject(
          try #require(Base64URL.decode(String((body["payload"] as? String ?? "").split(separator: ".")[1]))))
        #expect(claims["aud"] as? [String] == ["com.example.app"])
        #expect(claims["jti"] as? String == answer["jti"] as? String)
        #expect((answer["jti"] as? String)?.count == 22)
      }
    }
  }

  @Test func saysHowOftenItWasAsked() async throws {
    try await Rehearsal.run { rehearsal in
      _ = try await rehearsal.get("/auth/keys")
      for path in ["/auth/token", "/auth/token", "/auth/revoke", "/auth/usermigrationinfo"] {
        _ = try await rehearsal.post("", to: path)
      }
      let answer = try jsonObject(try await rehearsal.post("{}", to: "/simulator/asked").body)
      #expect(answer as? [String: Int] == ["keys": 1, "tokens": 2, "revocations": 1, "migrations": 1])
    }
  }

  @Test func setsItsKeysAsItIsToldOverHTTP() async throws {
    try await Rehearsal.run { rehearsal in
      let response = try await rehearsal.post("{}", to: "/simulator/keys/rotate")
      #expect(try jsonObject(response.body)["kid"] as? String == rehearsal.apple.ring.keys.last?.kid)
      #expect(try await rehearsal.post(#"{"answer":"html","delay_ms":1}"#, to: "/simulator/keys").status == 200)
      #expect(rehearsal.apple.keysAnswer == .html)
      #expect(rehearsal.apple.keysDelay == .milliseconds(1))
      #expect(try await rehearsal.get("/auth/keys").header("Content-Type") == "text/html")
      #expect(try await rehearsal.post("{}", to: "/simulator/keys").status == 200)
      #expect(rehearsal.apple.keysAnswer == .keys)
    }
  }

  nonisolated static let notify = #""type":"consent-revoked","user":"Ada","audience":"a","to":"http://127.0.0.1:1/""#
  @Test(arguments: [
    ("", "a JSON object"),
    ("[]", "a JSON object"),
    ("{}", "\"type\""),
    (#"{"type":"consent"}"#, "consent-revoked"),
    (#"{"type":"consent-revoked"}"#, "\"to\""),
    (#"{"type":"consent-revoked","to":"http://example.com/"}"#, "on loopback"),
    ("{\(notify),\"faults\":[\"bad\"]}", "events-object"),
    ("{\(notify),\"faults\":\"expired\"}", "a JSON object"),
    ("{\(notify),\"copies\":0}", "from 1 to 100"),
    ("{\(notify),\"attempts\":11}", "from 1 to 10"),
  ])
  func saysWhatItExpectedToBeTold(_ order: String, _ expected: String) async throws {
    try await Rehearsal.run { rehearsal in
      let response = try await rehearsal.post(order, to: "/simulator/notify")
      #expect(response.status == 400)
      #expect((try jsonObject(response.body)["expected"] as? String ?? "").contains(expected))
    }
  }

  @Test func knowsNoOtherPathsAndMethods() async throws {
    try await Rehearsal.run { rehearsal in
      let statuses = [
        try await rehearsal.get("/auth/other").status, try await rehearsal.get("/simulator/notify").status,
        try await rehearsal.post("{}", to: "/simulator/other").status,
        try await rehearsal.post("{}", to: "/auth/keys").status,
      ]
      #expect(statuses == [404, 405, 404, 405])
    }
  }
}
