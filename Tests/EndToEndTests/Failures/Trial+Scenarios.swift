import AccountEvents
import EventLoop
import TestSupport
import Testing

extension Trial {
  /// No broker can be reached for a while, which nobody outside notices: every answer is 200.
  func awayFor(_ duration: Duration) async throws {
    try await begin(.networkSilent, 0)
    try await pass(duration)
    try await #expect(ingress.spooled() > 0)
    try await end(.networkSilent, 0)
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
  }

  /// No broker can be reached until the spool is full, so that Apple is asked to send again.
  func untilSpoolIsFull() async throws {
    try await begin(.networkSilent, 0)
    try await until(within: .seconds(120)) { try (report?.refused ?? 0) > 50 }
    try await end(.networkSilent, 0)
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
  }

  /// The quarantine refuses whatever comes, while a wrong clock sends everything there. What is answered 200 waits, and all
  /// that follows of its users, after the clock is right again too.
  func oneTopicRefuses(for duration: Duration) async throws {
    try await cluster.configure(.quarantine, "max.message.bytes=1")
    try await begin(.clockDaysForward, 0)
    try await pass(duration)
    try await end(.clockDaysForward, 0)
    try await pass(duration)
    #expect(try await ingress.refused() > 0, "and says how many")
    try await cluster.configure(.quarantine, "max.message.bytes=1048588")
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
    #expect(try await ingress.refused() == 0)
  }

  /// Kills the ingress while it drains its spool, again and again.
  func killDuringTheDrain(times: Int) async throws {
    for time in 1...times {
      try await begin(.networkSilent, 0)
      try await until(within: .seconds(120)) { try await ingress.spooled() > 100 }
      // So slow that the drain does not end before it is noticed.
      try await begin(.networkSlow, 0)
      let drained = try await ingress.drained()
      try await until(within: .seconds(120)) { try await ingress.drained() > drained }
      tell("kill \(time): \(try await ingress.spooled()) spooled, \(try await ingress.drained()) drained")
      await ingress.kill()
      try await ingress.start()
    }
    try await end(.networkSlow, 0)
    tell("well again after \(Self.seconds(try await untilRecovered())) s")
  }
}
