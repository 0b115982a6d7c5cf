import AccountEvents
import AccountServices
import AppleID
import Cryptography
import EventLoop
import HTTPClient
import HTTPServer
import Kafka
import Telemetry
import TestSupport
import Testing

/// The notifications that Apple itself signed travel the whole way, through a real Kafka.
///
/// They are years old, and the clock of a program cannot be set; so the service runs here, and only what it is told of the
/// time differs from the program.
@Loop @Suite(.serialized, RealBroker.isThere) struct AuthenticTests {
  @Test(.timeLimit(.minutes(30)), arguments: Authentic.notifications)
  func standsOnKafkaAsAppleSignedIt(authentic: Authentic) async throws {
    let broker = try await RealBroker.withTopics()
    try await run(at: authentic.moment, broker) { post in
      #expect(try await post(Self.body(authentic.jws)) == 200)
      try await TopicReader.run(broker.bootstrapServers) { reader in
        let record = try await reader.record(with: authentic.jws)
        #expect(record.topic == "apple.account-events.v1")
        #expect(record.text(of: "ce_type") == "com.apple.siwa.\(authentic.type).v1")
        #expect(record.text(of: "ce_audience") == authentic.audience)
        #expect(record.text(of: "ce_team") == Self.teams.first { $0.key.text == authentic.audience }?.value.text)
        let event = try AccountEvent(decoding: try #require(record.value))
        #expect(record.key == Array("\(event.team)/\(event.subject.text)".utf8))
      }
    }
  }

  /// One byte of what header, claims and signature stand for, in three places of each.
  @Test(.timeLimit(.minutes(30)), arguments: Authentic.notifications, 0..<3)
  func withOneByteChangedIsRefused(authentic: Authentic, part: Int) async throws {
    let broker = try await RealBroker.withTopics()
    try await run(at: authentic.moment, broker) { post in
      let parts = authentic.jws.split(separator: ".").map(String.init)
      let bytes = try #require(Base64URL.decode(parts[part]))
      for place in [2, bytes.count / 2, bytes.count - 3] {
        var (changed, changedParts) = (bytes, parts)
        changed[place] ^= 1
        changedParts[part] = Base64URL.encode(changed)
        let status = try await post(Self.body(changedParts.joined(separator: ".")))
        #expect(status == 400, "byte \(place)")
      }
    }
  }

  nonisolated private static let teams: [ClientID: TeamID] = {
    var teams: [ClientID: TeamID] = [:]
    for (index, authentic) in Authentic.notifications.enumerated() {
      guard let audience = ClientID(authentic.audience), let team = TeamID("A1B2C3D4E\(index)") else { continue }
      teams[audience] = team
    }
    return teams
  }()

  private static func body(_ jws: String) -> [UInt8] { Array(#"{"payload":"\#(jws)"}"#.utf8) }

  /// Runs `body` while the ingress runs at a moment of the past, with a function that delivers to it.
  private func run(
    at moment: Int64, _ broker: RealBroker, _ body: @Loop (@Loop ([UInt8]) async throws -> Int) async throws -> Void
  ) async throws {
    try await Stage.run(brokers: broker.bootstrapServers) { stage in
      let now = try #require(Timestamp(seconds: moment))
      let (registry, log) = (MetricsRegistry(), CapturedLog())
      let keys = AppleKeys(
        from: AuthenticKeys(), cache: nil,
        pace: FetchPace(
          refresh: .seconds(3600), pause: .nanoseconds(1), firstRetry: .seconds(1), longestRetry: .seconds(1)),
        alarm: SystemAlarmClock(), now: { now }, jitter: { 0 }, metrics: AppleKeysMetrics(registry, now: { now }),
        logger: log.logger())
      let kafka = try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)])
      let events = try KafkaEventLog(topics: [.accountEvents, .quarantine]) {
        (_: KafkaEventLog.Batching) throws(KafkaError) in
        try Producer(kafka, deadline: .seconds(300), log: { _ in })
      }
      let publisher = try await EventPublisher(
        stage.settings, log: events, registry: registry, logger: log.logger(), now: { now })
      let service = try IngressService(
        stage.settings,
        verifier: NotificationVerifier(
          issuer: "https://appleid.apple.com", teams: Self.teams, clockTolerance: .seconds(60)),
        keys: keys, publisher: publisher, registry: registry,
        logger: log.logger(), now: { now })
      let url = try #require(HTTPClientURL("https://\(service.address)\(Stage.path)"))
      try await withThrowingTaskGroup { group in
        group.addTask(executorPreference: Loop.executor) { await service.run() }
        let result: Result<Void, any Error>
        do {
          result = .success(
            try await body { bytes in
              try await stage.client.send(
                .post(bytes, to: url, headers: [], isRepeatable: true, within: .seconds(300), maximumBodySize: 4096)
              )
              .status
            })
        } catch { result = .failure(error) }
        await service.drain(within: .seconds(30))
        try result.get()
      }
    }
  }
}

/// Apple's keys of those years.
private struct AuthenticKeys: AppleKeysSource {
  func fetch() async throws(AppleKeysFailure) -> AppleKeysAnswer {
    do { return AppleKeysAnswer(try Authentic.keys()) } catch { throw AppleKeysFailure(.unreachable, "\(error)") }
  }
}
