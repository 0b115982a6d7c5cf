import AccountEvents
import AccountServices
import AccountStore
import AppleSimulator
import EventLoop
import HTTPClient
import TestSupport
import Testing
import TransparencyLog

/// Apple replaces its keys without notice; what it signed with those before stays proven.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct RotatedAppleKeysTests {
  /// More keys than Apple has at a time.
  private static let replacements = 4
  private static let eventsEach = 3

  @Test func whatEachGenerationOfKeysHasSignedIsVerifiedAgain() async throws {
    try await ConsumerStage.run { stage, simulator in
      try await signAndRotate(stage, simulator)
    }
  }

  private func signAndRotate(_ stage: ConsumerStage, _ simulator: SimulatorProgram) async throws {
    let ingress = try await stage.startIngress(["SIWA_APPLE_KEYS_PAUSE": "1s"])
    let member = try await stage.start(.emailRelay)
    let log = try await stage.startAuditLog()
    var generations: [(newKeys: Set<String>, events: [String])] = []
    for number in 0..<3 {
      var keys: Set<String> = []
      if number > 0 {
        for _ in 0..<Self.replacements {
          keys.insert(try #require(try await simulator.order("keys/rotate")["kid"] as? String))
        }
      }
      var events: [String] = []
      for user in 0..<Self.eventsEach { events.append(try await notify(of: "user-\(user)", simulator, ingress)) }
      generations.append((keys, events))
    }
    let all = generations.flatMap(\.events)
    try await until(every: .milliseconds(100)) {
      let complete = try await stage.siwa("audit", "completeness")
      return complete.end == .exit(0) && complete.output.contains("Obligations  \(all.count), ")
    }

    let logged = try await obligations(in: stage.auditLog, stage)
    #expect(Set(logged.keys) == Set(all) && logged.values.allSatisfy { $0.signature == .verified })
    for (number, (keys, events)) in generations.enumerated() {
      let signers = Set(events.compactMap { logged[$0]?.keyID?.text })
      #expect(!signers.isEmpty)
      for (other, generation) in generations.enumerated() where !generation.newKeys.isEmpty {
        #expect(generation.newKeys.isDisjoint(with: signers) == (other != number), "generation \(number)")
      }
      #expect(keys.isEmpty || signers.isSubset(of: keys))
      let told = try await stage.siwa("audit", "explain", events[0])
      #expect(told.end == .exit(0) && told.output.contains("\nMet "), "\(told)")
      #expect(signers.contains { told.output.contains("by Apple, key \($0)") }, "\(told)")
    }

    // A log that begins now has no key of Apple's but those of the topic.
    let anew = stage.files.path + "/anew"
    let size = try #require(try await log.checkpoint()).checkpoint.size
    try await stage.beginAuditLog(["SIWA_AUDIT_LOG_DIRECTORY": anew])
    let second = try await stage.startAuditLog(["SIWA_AUDIT_LOG_DIRECTORY": anew])
    try await second.untilPublished(Int(size))
    #expect(try await obligations(in: anew, stage).mapValues(\.signature) == logged.mapValues(\.signature))
    for directory in [stage.auditLog, anew] {
      let verified = try await stage.siwa("audit", "verify", "--records", "--log", directory)
      #expect(verified.end == .exit(0), "\(verified)")
      let words = "Records     \(all.count) compared, \(all.count) of them signed by Apple, "
      #expect(verified.output.contains(words), "\(verified)")
    }
    for end in [try await second.end(), try await log.end(), try await member.end(), try await ingress.end()] {
      #expect(end == .exit(0))
    }
  }

  /// Has Apple tell of an event until the ingress, which does not fetch keys for every unknown one, has taken it.
  private func notify(
    of user: String, _ simulator: SimulatorProgram, _ ingress: RunningIngress
  ) async throws -> String {
    let words: [String: Any] = [
      "type": NotificationType.emailEnabled.rawValue, "user": user, "audience": AppleSide.app,
      "to": try ingress.url.text, "attempts": 3,
    ]
    var event = ""
    try await until(every: .milliseconds(100)) {
      let answer = try await simulator.order("notify", words)
      event = try #require(answer["jti"] as? String)
      return (answer["attempts"] as? [String])?.last == "200"
    }
    return event
  }

  /// What a log has of each event that came.
  private func obligations(
    in directory: String, _ stage: ConsumerStage
  ) async throws -> [String: AuditEntry.Obligation] {
    let key = stage.auditKey.key
    let trust = try LogTrust(origin: key.name, key: key, policy: .none)
    let log = try await AuditLog.open(LogDirectory(directory), trusting: trust)
    var found: [String: AuditEntry.Obligation] = [:]
    try await log.entries(
      progress: { _, _ in },
      { _, entry in
        if case .obligation(let obligation) = entry { found[obligation.id.text] = obligation }
      })
    return found
  }
}
