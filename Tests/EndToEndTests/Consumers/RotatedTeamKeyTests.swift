import AccountEvents
import AccountServices
import AccountStore
import AppleID
import AppleSimulator
import EventLoop
import Kafka
import TestSupport
import Testing

/// A team replaces its key for Sign in with Apple while people are asking for the deletion of their accounts.
@Loop @Suite(RealBroker.isThere, .serialized, .timeLimit(.minutes(30))) struct RotatedTeamKeyTests {
  private static let people = (0..<16).map { "user-\($0)" }

  @Test func noRevocationIsLostWhileTheKeyTurnsOver() async throws {
    try await ConsumerStage.run { stage, simulator in
      try await turnTheKeyOver(stage, simulator)
    }
  }

  private func turnTheKeyOver(_ stage: ConsumerStage, _ simulator: SimulatorProgram) async throws {
    let progress = try GroupProgress(stage.broker.bootstrapServers)
    var tokens: [RefreshToken] = []
    for name in Self.people {
      let code = try await simulator.signIn(name)
      tokens.append(try await stage.signIn(Person(named: name), code: code, at: .now - .seconds(60)))
    }
    // The key that goes is not the stage's own, with which the test asks what became of the tokens.
    let (old, new) = (try await newKey(stage, simulator, "old.p8"), try await newKey(stage, simulator, "new.p8"))
    let member = try await stage.start(
      .tokenRevoker,
      [
        "SIWA_TEAMS_A1B2C3D4E5_KEY_ID": old.id, "SIWA_TEAMS_A1B2C3D4E5_PRIVATE_KEY_FILE": old.file,
        "SIWA_TEAMS_A1B2C3D4E5_KEY_ID_SECOND": new.id, "SIWA_TEAMS_A1B2C3D4E5_PRIVATE_KEY_SECOND_FILE": new.file,
      ])
    let gauge = #"siwa_apple_second_key_signs{client="\#(AppleSide.app)"}"#
    #expect(try await member.metric(gauge) == 0)
    // The first four requests are under way when the key is withdrawn; the rest come later.
    try await simulator.order("revocations", ["answer": "tokens", "delay_ms": 2000])
    try await stage.send(try Self.people[..<4].map { try request($0, stage) })
    try await until { try await simulator.asked()["revocations", default: 0] >= 3 }
    try await simulator.order("team/withdraw-key", ["key_id": old.id])
    try await stage.send(try Self.people[4...].map { try request($0, stage) })
    try await until(every: .milliseconds(100)) { try await progress.isDone(.tokenRevoker) }

    for token in tokens { #expect(try await !stage.isGood(token)) }
    let topics = try await TopicContents.read(
      [.outcomes, .deadLetters(of: .tokenRevoker)], stage.broker.bootstrapServers)
    let outcomes = (topics[Topic.outcomes.name] ?? []).compactMap { $0.text(of: "ce_id") }
    for name in Self.people { #expect(outcomes.filter { $0 == "asked-by-\(name).tokens-revoked" }.count == 1) }
    #expect(topics[Topic.deadLetters(of: .tokenRevoker).name]?.isEmpty ?? true)
    #expect(try await member.metric(gauge) == 1)
    let line = try await member.program.line(with: "Apple refuses a key of the team's, and accepts the other one")
    #expect(line.contains(#""key.refused":"\#(old.id)""#) && line.contains(#""key.signing":"\#(new.id)""#), "\(line)")
    #expect(try await member.end() == .exit(0))
    await progress.close()
  }

  /// A key that the team gets at Apple, in a file.
  private func newKey(
    _ stage: ConsumerStage, _ simulator: SimulatorProgram, _ name: String
  ) async throws -> (id: String, file: String) {
    let answer = try await simulator.order("team", ["team": AppleSide.team, "audiences": [AppleSide.app]])
    let file = stage.files.write(name, try #require(answer["private_key"] as? String))
    return (try #require(answer["key_id"] as? String), file)
  }

  private func request(_ name: String, _ stage: ConsumerStage) throws -> KafkaRecord {
    try stage.record(of: .sample("asked-by-\(name)", .accountDeletionRequested, of: Person(named: name)))
  }
}
