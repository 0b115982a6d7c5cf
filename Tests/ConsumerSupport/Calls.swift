package import AccountEvents
package import AccountServices
package import AccountStore
package import EventLoop

/// A consumer that remembers what it was asked, and says something of each event.
@Loop
package final class Calls {
  /// The events that were asked about, by number.
  package private(set) var events: [String] = []
  /// Which attempt each of them was.
  package private(set) var attempts: [Int] = []
  /// How many are being processed at the moment, and were at most.
  package private(set) var current = 0
  package private(set) var most = 0
  /// Throws for an event that is to fail.
  package var fault: (AccountEvent) throws -> Void = { _ in }
  /// What events wait for.
  package var gate: (AccountEvent) async -> Void = { _ in }

  package nonisolated init() {}

  private func process(_ delivery: Delivery) async throws -> Decision {
    events.append(delivery.event.id.text)
    attempts.append(delivery.attempt)
    current += 1
    most = max(most, current)
    defer { current -= 1 }
    await gate(delivery.event)
    try fault(delivery.event)
    return Decision("done")
  }

  /// The consumer. Each event is void once a later one was applied, unless `severity` says otherwise.
  package func consumer(
    yieldsTo: Set<EventPrecedence> = [], _ severity: @escaping @Sendable (AccountEvent) -> Int? = { _ in 0 }
  ) -> EventConsumer {
    var consumer = EventConsumer(
      "sample", outcomes: ["done"],
      interest: { event in severity(event).map { Interest(severity: $0, yieldsTo: yieldsTo) } },
      process: { delivery in try await self.process(delivery) })
    consumer.announce = { event, _, _ in
      [Announcement(topic: .outcomes, key: event.account.key, value: Array(event.id.text.utf8), headers: [])]
    }
    return consumer
  }
}
