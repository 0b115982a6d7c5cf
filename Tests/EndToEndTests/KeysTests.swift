import AccountEvents
import AppleSimulator
import EventLoop
import Foundation
import HTTPClient
import Kafka
import TestSupport
import Testing

/// Apple's keys over time, as the programs see them.
@Loop @Suite(.serialized) struct KeysTests {
  /// An ingress that asks Apple as often as it may.
  private static let eager = ["SIWA_APPLE_KEYS_PAUSE": "1s"]

  /// Names a key that nobody has until Apple was asked once more.
  private func haveAppleAsked(_ stage: Stage, _ ingress: RunningIngress) async throws {
    let before = stage.apple.keysAsked
    try await until {
      _ = try await ingress.post(stage.sign(.consentRevoked, for: Stage.app, .unknownKey).body)
      return stage.apple.keysAsked > before
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func goesOnWithTheKeysItHasWhateverAppleAnswers() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      try await stage.ingress(Self.eager) { ingress in
        try await until { try await ingress.post(stage.sign().body).status == 200 }
        for answer in [KeysAnswer.html, .tenMegabytes, .drip, .otherKey] {
          stage.apple.keysAnswer = answer
          try await haveAppleAsked(stage, ingress)
          _ = try await ingress.program.line(with: "Apple's keys could not be fetched")
          for _ in 0..<2 {
            let response = try await ingress.post(stage.sign().body)
            #expect(response.status == 200, "\(answer)")
          }
          stage.apple.keysAnswer = .keys
          try await haveAppleAsked(stage, ingress)
        }
        #expect(try await ingress.get("/metrics").text.contains("\nsiwa_apple_keys 2\n"))
        #expect(try await ingress.end() == .exit(0))
      }
    }
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30)))
  func everyKeyThatVerifiedSomethingStandsOnItsTopic() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      try await stage.ingress(Self.eager) { ingress in
        for _ in 0..<2 {
          let notification = try stage.sign()
          try await until { try await ingress.post(notification.body).status == 200 }
        }
        let old = stage.apple.ring.keys.map(\.kid)
        let new = try stage.apple.rotateKeys()
        for _ in 0..<2 {
          let notification = try stage.sign()
          try await until { try await ingress.post(notification.body).status == 200 }
        }
        try await TopicReader.run(stage.brokers) { reader in
          for kid in old + [new] {
            let record = try await reader.record(of: kid)
            let key = try AppleSigningKey(decoding: try #require(record.value))
            #expect(record.topic == "apple.signing-keys.v1" && record.key == Array(kid.utf8) && key.id.text == kid)
          }
        }
      }
    }
    _ = consume cluster
  }

  private func siwa(_ words: [String], _ stage: Stage) async throws -> (end: RunningProgram.End, output: String) {
    // Apple is served by the tests' own loop, which has much else to do.
    let environment = stage.environment.merging(["SIWA_APPLE_DEADLINE": "60s"]) { $1 }
    return try await RunningProgram.run("siwa", ["keys"] + words, environment) { program in
      let end = try await program.untilEnd()
      return (end, program.output)
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func siwaSaysWhichKeysAreHeldAndWhatAppleHas() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      let path = stage.files.path + "/apple-keys.json"
      let none = try await siwa([], stage)
      #expect(none.end == .exit(1) && none.output == "None held: no \(path)\n")
      try await stage.ingress { _ in
        try await until { unsafe access(path, F_OK) == 0 }
      }
      let (old, left) = (stage.apple.ring.keys[0].kid, stage.apple.ring.keys[1].kid)
      let held = try await siwa([], stage)
      #expect(held.end == .exit(0) && held.output.hasPrefix("Fetched 2"))
      for kid in [old, left] { #expect(held.output.contains("  \(kid)")) }

      let new = try stage.apple.rotateKeys()
      let compared = try await siwa(["--fetch"], stage)
      #expect(compared.end == .exit(0))
      for (kid, state) in [(old, "gone"), (left, "same"), (new, "new ")] {
        #expect(compared.output.contains("\n  \(state)  \(kid)"), "\(compared.output)")
      }
      let json = try await siwa(["--fetch", "--json"], stage)
      let object = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
      let keys = try #require(object["keys"] as? [[String: Any]])
      #expect(Set(keys.compactMap { $0["state"] as? String }) == ["same", "new", "gone"])
      #expect(keys.allSatisfy { $0["bits"] as? Int == 2048 } && object["fetched_at"] is String)

      _ = stage.files.write("apple-keys.json", "damaged")
      let damaged = try await siwa(["--fetch"], stage)
      #expect(damaged.end == .exit(1) && damaged.output.contains("\n  new   \(new)"), "\(damaged.output)")

      for answer in [KeysAnswer.unavailable, .html, .none] {
        stage.apple.keysAnswer = answer
        let end = try await siwa(["--fetch"], stage).end
        #expect(end == .exit(1), "\(answer)")
      }
    }
    _ = consume cluster
  }
}
