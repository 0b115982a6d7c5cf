import AccountEvents
import AppleSimulator
import EventLoop
import Glibc
import HTTPClient
import Kafka
import TestSupport
import Testing

/// The program `siwa-ingress` as it is installed, with deploy/siwa.yaml.
@Loop @Suite(.serialized) struct IngressTests {
  @Test(.timeLimit(.minutes(30)))
  func whatAppleSendsStandsOnKafka() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      try await stage.ingress { ingress in
        try await ingress.untilReady()
        var sent: [SignedNotification] = []
        for type in NotificationType.allCases { sent.append(try stage.sign(type)) }
        let plan = DeliveryPlan(
          receiver: try ingress.url, attempts: 3, pause: .milliseconds(100), deadline: .seconds(300))
        let deliveries = await stage.apple.deliver(sent, plan)
        #expect(deliveries.map(\.attempts) == Array(repeating: [.answered(200)], count: sent.count))
        try await TopicReader.run(stage.brokers) { reader in
          for notification in sent {
            let record = try await reader.record(of: notification.notification.jti)
            #expect(record.text(of: "apple-jws") == notification.jws)
            let event = try AccountEvent(decoding: try #require(record.value))
            #expect(event.subject.text == Stage.person.subject)
          }
        }
        #expect(try await ingress.end() == .exit(0))
        #expect(!ingress.program.errors.contains(Stage.person.subject))
      }
    }
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30)))
  func oneAddressServesManyTeamsAndApps() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    let others = (1...20).map { "org.example.other\($0)" }
    let teams = ["SIWA_TEAMS_Z9Y8X7W6V5_AUDIENCES": others.joined(separator: ",")]
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      try await stage.ingress(teams) { ingress in
        try await ingress.untilReady()
        var sent: [AppleNotification] = []
        for audience in [Stage.app, Stage.web] + others {
          let notification = try stage.sign(for: audience)
          #expect(try await ingress.post(notification.body).status == 200)
          sent.append(notification.notification)
        }
        try await TopicReader.run(stage.brokers) { reader in
          for notification in sent {
            let (record, audience) = (try await reader.record(of: notification.jti), notification.audience)
            #expect(record.text(of: "ce_audience") == audience)
            #expect(record.text(of: "ce_team") == (others.contains(audience) ? "Z9Y8X7W6V5" : "A1B2C3D4E5"))
          }
        }
        #expect(try await ingress.post(stage.sign(for: "org.example.nobody").body).status == 400)
      }
    }
    _ = consume cluster
  }

  /// More silent peers than it may have descriptors, from the moment at which it listens: they make room for Apple, and
  /// operators are served beside them.
  @Test(.timeLimit(.minutes(30)))
  func aFloodOfSilentPeersLeavesDescriptorsToEverybodyElse() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      try await stage.ingress(descriptors: "64:400") { ingress in
        _ = try await ingress.program.line(with: "no more than 200 can be open")
        let silent = try (0..<300).map { _ in try RawClient(ingress.address) }
        try await ingress.untilReady()
        for _ in 0..<3 { #expect(try await ingress.post(stage.sign(.consentRevoked).body).status == 200) }
        let metrics = try await ingress.get("/metrics").text
        #expect(metrics.contains("siwa_http_connections_limit 200\n"), "\(metrics)")
        #expect(!metrics.contains("siwa_http_connections_shed_total 0\n"))
        #expect(metrics.contains("siwa_http_accept_failures_total 0\n"))
        #expect(try await ingress.get("/livez").status == 200)
        // libdispatch, which ends a process that has no descriptors left, runs nothing: its threads bear the program's name.
        #expect(try ingress.program.threadNames().filter { $0 == "siwa-ingress" }.count == 1)
        withExtendedLifetime(silent) {}
      }
    }
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30)))
  func severalProcessesServeOneAddress() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      let shared = ["SIWA_INGRESS_SHARE_PORT": "true"]
      try await stage.ingress(shared) { first in
        let own = [
          "SIWA_INGRESS_LISTEN": "\(first.address)", "SIWA_INGRESS_SPOOL_DIRECTORY": stage.files.path + "/spool-2",
        ]
        try await stage.ingress(shared.merging(own) { $1 }) { second in
          #expect(second.address == first.address)
          try await first.untilReady()
          try await second.untilReady()
          #expect(try await first.post(stage.sign().body).status == 200)
          // Whoever is left takes all of it.
          let end = try await first.end()
          #expect(end == .exit(0))
          for _ in 0..<10 {
            let response = try await second.post(stage.sign().body)
            #expect(response.status == 200)
          }
        }
      }
    }
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30)))
  func whatComesWithoutKafkaWaitsForIt() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      try await stage.ingress(["SIWA_INGRESS_DEADLINES_PUBLISH": "1s"]) { ingress in
        try await ingress.untilReady()
        cluster.setReachable(false)
        let notification = try stage.sign()
        #expect(try await ingress.post(notification.body).status == 200)
        try await until { try await ingress.get("/readyz").text.contains("kafka: replaced: the spool takes over") }
        #expect(try await ingress.get("/readyz").status == 200)
        #expect(try await ingress.get("/metrics").text.contains("\nsiwa_spool_records 2\n"))

        cluster.setReachable(true)
        try await TopicReader.run(stage.brokers) { reader in
          _ = try await reader.record(of: notification.notification.jti)
        }
        try await until { try await ingress.get("/metrics").text.contains("\nsiwa_spool_records 0\n") }
        #expect(try await ingress.post(notification.body).status == 200)
        let metrics = try await ingress.get("/metrics").text
        #expect(metrics.contains("siwa_ingress_notifications_accepted_total 2\n"))
        #expect(metrics.contains("siwa_ingress_events_repeated_total 1\n"))
        #expect(try await ingress.end() == .exit(0))
      }
    }
  }

  @Test(.timeLimit(.minutes(30)), RealBroker.isThere)
  func aFrozenKafkaHoldsNobodyUp() async throws {
    let broker = try await RealBroker.withTopics(RealBroker())
    try await Stage.run(brokers: broker.bootstrapServers) { stage in
      try await stage.ingress(["SIWA_INGRESS_DEADLINES_PUBLISH": "2s"]) { ingress in
        try await ingress.untilReady()
        #expect(try await ingress.post(stage.sign().body).status == 200)
        try broker.freeze()
        let notification = try stage.sign()
        #expect(try await ingress.post(notification.body).status == 200)
        try await until { try await ingress.get("/readyz").text.contains("kafka: replaced: ") }
        broker.thaw()
        try await TopicReader.run(stage.brokers) { reader in
          _ = try await reader.record(of: notification.notification.jti)
        }
        try broker.freeze()
        #expect(try await ingress.end() == .exit(0))
        broker.thaw()
      }
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func aRestartWithoutAppleStillVerifies() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      try await stage.ingress { ingress in
        try await ingress.untilReady()
        #expect(try await ingress.end() == .exit(0))
      }
      var status = stat()
      #expect(unsafe stat(stage.files.path + "/apple-keys.json", &status) == 0 && status.st_mode & 0o777 == 0o600)
      // What was kept is believed only for the address that it came from: so Apple stays there, and fails.
      stage.apple.keysAnswer = .unavailable
      try await stage.ingress { ingress in
        _ = try await ingress.program.line(with: "Apple's keys could not be fetched", "status 503")
        #expect(try await ingress.post(stage.sign().body).status == 200)
        #expect(try await ingress.end() == .exit(0))
      }
    }
    _ = consume cluster
  }

  @Test(.timeLimit(.minutes(30)))
  func tellsOperatorsWhatItDoes() async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      // What was answered counts as published, and waits in no spool, however slow a new broker is.
      try await stage.ingress(["SIWA_INGRESS_SPOOL_AFTER": "29s"]) { ingress in
        try await ingress.untilReady()
        #expect(try await ingress.get("/livez") == (200, "alive\n"))
        // A check that took long may have been told of the spool instead.
        try await until { try await ingress.get("/readyz").text == "keys: ready\nkafka: ready\nservice: ready\n" }
        for faults in [[], [.unknownType], [.forgedSignature]] as [[Fault]] {
          _ = try await ingress.post(
            stage.apple.sign(.accountDeleted, of: Stage.person, for: Stage.app, faults: faults).body)
        }
        let metrics = try await ingress.get("/metrics").text
        for line in [
          "siwa_ingress_notifications_accepted_total 2",
          #"siwa_ingress_notifications_refused_total{reason="wrong-signature"} 1"#,
          #"siwa_ingress_events_published_total{type="account-delete"} 1"#,
          #"siwa_ingress_events_quarantined_total{reason="unknown-type"} 1"#,
          "siwa_ingress_verification_seconds_count 3", "siwa_ingress_publication_seconds_count 2",
          "siwa_apple_keys 2", "siwa_http_connections 1",
        ] {
          #expect(metrics.contains("\n\(line)\n"), "\(line)")
        }
        for name in [
          "siwa_apple_keys_age_seconds ", "siwa_loop_turn_seconds_count ", "siwa_build_info{sha256=\"",
          "process_open_fds ", "siwa_kafka_queue_records ",
        ] { #expect(metrics.contains("\n\(name)"), "\(name)") }
      }
    }
    _ = consume cluster
  }
}
