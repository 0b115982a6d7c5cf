import AccountEvents
import EventLoop
import TestSupport
import Testing

extension Trial {
  /// No broker can be reached for a while, which nobody outside notices: every answer is 200.
  func awayFor(_ duration: Duration) async throws {
    try await begin(.networkSilent, 0)
    try await pass(duration)
    try await until { try await ingress.spooled() > 0 }
    try await end(.networkSilent, 0)
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
  }

  /// No broker can be reached until the spool is full, so that Apple is asked to send again.
  func untilSpoolIsFull() async throws {
    try await begin(.networkSilent, 0)
    try await until { try (report?.refused ?? 0) > 50 }
    try await end(.networkSilent, 0)
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
  }

  /// The ingress ends in good order with something in its spool, Apple's keys among it, and starts where its disk has no
  /// room. Whom the spool holds something of waits; everybody else is answered from Kafka alone.
  func startOnAFullDisk(rate: Int) async throws {
    try await begin(.networkSilent, 0)
    try send(rate: rate, doubts: 0, seed: 1)
    try await until { try await ingress.spooled() > 20 }
    #expect(try await ingress.end() == .exit(0))
    ingress.faults.isDiskFull = true
    try await end(.networkSilent, 0)
    try await ingress.start()
    let held = try await ingress.spooled()
    #expect(held > 20, "it knows what it holds")
    // Whom it holds something of has a second event, which comes at once or in the second round.
    try await until { try await ingress.deferred() > 0 }
    try await until { try await ingress.accepted() > 200 }
    #expect(try await !ingress.takesRecords())
    #expect(try await ingress.spooled() == held, "nothing leaves a file that is not open")
    ingress.faults.isDiskFull = false
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
    #expect(try await ingress.takesRecords())
    #expect(try await ingress.drained() >= held)
  }

  /// One partition has fewer copies than what is acknowledged must have, all others have enough: for so long that Kafka's
  /// client gives up again and again.
  func onePartitionShort(for duration: Duration) async throws {
    try await whateverHappens {
      // With fewer replicas than that Kafka asks for fewer: one of two has to be away.
      try await cluster.assign(partition: 0, to: [0, 1])
      cluster.kill(1)
      try await until(within: .seconds(240)) { try await cluster.shortPartitions() == [0] }
      let before = try acknowledged
      try await pass(duration)
      try await until { try acknowledged > before }
      #expect(try await ingress.spooled() > 0)
      #expect(try await cluster.shortPartitions() == [0], "it was short all the time: nothing mended it")
    } then: {
      try await cluster.startDead()
      try await cluster.assign(partition: 0, to: [0, 1, 2])
    }
    #expect(try await cluster.shortPartitions() == [])
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
  }

  /// The quarantine refuses whatever comes, while a wrong clock sends everything there. What is answered 200 waits, and all
  /// that follows of its users, after the clock is right again too.
  ///
  /// Nothing is sent before that: Kafka's tool may take longer to start than all events to be answered.
  func oneTopicRefuses(for duration: Duration, rate: Int) async throws {
    try await whateverHappens {
      try await cluster.configure(.quarantine, "max.message.bytes", to: 1)
      try await begin(.clockDaysForward, 0)
      try send(rate: rate, doubts: 0, seed: 1)
      try await pass(duration)
      // It says how many.
      try await until { try await ingress.refused() > 0 }
      try await end(.clockDaysForward, 0)
      try await pass(duration)
    } then: {
      try await cluster.configure(.quarantine, "max.message.bytes", to: nil)
    }
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
    #expect(try await ingress.refused() == 0)
  }

  /// Runs `body`, and `mending` behind it even where it fails: the brokers are those of all tests.
  private func whateverHappens(
    _ body: @Loop () async throws -> Void, then mending: @Loop () async throws -> Void
  ) async throws {
    let result: Result<Void, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    try await mending()
    try result.get()
  }

  /// Kills the ingress while it drains its spool, again and again.
  func killDuringTheDrain(times: Int) async throws {
    for time in 1...times {
      try await begin(.networkSilent, 0)
      try await until { try await ingress.spooled() > 100 }
      // So slow that the drain does not end before it is noticed.
      try await begin(.networkSlow, 0)
      let drained = try await ingress.drained()
      try await until { try await ingress.drained() > drained }
      tell("kill \(time): \(try await ingress.spooled()) spooled, \(try await ingress.drained()) drained")
      await ingress.kill()
      try await ingress.start()
    }
    try await end(.networkSlow, 0)
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
  }
}
