import AppleSimulator
import EventLoop
import Glibc
import HTTPClient
import Kafka
import TestSupport
import Testing

/// A notification that waits for its answer.
@Loop
private final class Delivery {
  private(set) var isOver = false

  func answer(_ body: @Loop () async throws -> Int) async throws -> Int {
    defer { isOver = true }
    return try await body()
  }
}

/// How `siwa-ingress` ends.
@Loop @Suite(.serialized) struct EndTests {
  /// Runs `body` while one notification waits for a Kafka that cannot be reached.
  private func withOneInFlight(
    drainDeadline: String = "60s",
    _ body: @Loop (RunningIngress, EmbeddedCluster, Task<Int, any Error>) async throws -> Void
  ) async throws {
    let cluster = try EmbeddedCluster.withTopics()
    try await Stage.run(brokers: cluster.bootstrapServers) { stage in
      // The spool would take it over long before.
      let deadlines = [
        "SIWA_INGRESS_DEADLINES_REQUEST": "90s", "SIWA_INGRESS_DEADLINES_PUBLISH": "55s",
        "SIWA_INGRESS_DEADLINES_DRAIN": drainDeadline, "SIWA_INGRESS_SPOOL_AFTER": "60s",
      ]
      try await stage.ingress(deadlines) { ingress in
        try await ingress.untilReady()
        cluster.setReachable(false)
        let delivery = Delivery()
        let answer = Task(executorPreference: Loop.executor) { [body = try stage.sign().body] in
          try await delivery.answer { try await ingress.post(body).status }
        }
        var metrics = ""
        try await until {
          metrics = try await ingress.get("/metrics").text
          return delivery.isOver || metrics.contains("siwa_ingress_verification_seconds_count 1")
        }
        // Whatever refuses it is to be seen, instead of a wait in vain.
        if delivery.isOver {
          Issue.record("answered with \(await answer.result): \(metrics)\n\(ingress.program.errors)")
        }
        try await body(ingress, cluster, answer)
      }
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func whatWasAcceptedIsAnsweredFirst() async throws {
    try await withOneInFlight { ingress, cluster, answer in
      ingress.program.signal(SIGTERM)
      _ = try await ingress.program.line(with: "ingress drains")
      #expect(try await ingress.get("/readyz").text.contains("service: not ready: draining"))
      try await until {
        do { _ = try RawClient(ingress.address) } catch is ClientFailure { return true }
        return false
      }
      cluster.setReachable(true)
      #expect(try await answer.value == 200)
      #expect(try await ingress.program.untilEnd() == .exit(0))
    }
  }

  @Test(.timeLimit(.minutes(30)), arguments: [SIGTERM, SIGINT])
  func aSecondSignalEndsItAtOnce(second: Int32) async throws {
    try await withOneInFlight { ingress, _, answer in
      ingress.program.signal(SIGTERM)
      _ = try await ingress.program.line(with: "ingress drains")
      ingress.program.signal(second)
      #expect(try await ingress.program.untilEnd() == .exit(1))
      await #expect(throws: HTTPClientError.self) { try await answer.value }
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func patienceIsLimited() async throws {
    try await withOneInFlight(drainDeadline: "100ms") { ingress, _, answer in
      let end = try await ingress.end()
      #expect(end == .exit(0))
      await #expect(throws: HTTPClientError.self) { try await answer.value }
    }
  }

  /// SIGHUP does not end it, as it would end other programs: it looks at the certificate.
  @Test(.timeLimit(.minutes(30)))
  func aHangupLooksAtTheCertificate() async throws {
    try await Stage.run(brokers: "127.0.0.1:9") { stage in
      try await stage.ingress { ingress in
        _ = try await ingress.get("/livez")
        ingress.program.signal(SIGHUP)
        _ = try await ingress.program.line(with: "certificate unchanged")
        #expect(try await ingress.end() == .exit(0))
      }
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func endsBeforeItIsReady() async throws {
    // Nobody listens there.
    try await Stage.run(brokers: "127.0.0.1:9") { stage in
      stage.apple.keysAnswer = .silence
      try await stage.ingress { ingress in
        let (status, text) = try await ingress.get("/readyz")
        #expect(status == 503 && text.contains("keys: not ready") && !text.contains("kafka: ready"))
        #expect(try await ingress.end() == .exit(0))
      }
    }
  }
}
