import AppleSimulator
import EventLoop
import HTTPClient
import Testing

@Loop @Suite struct DeliveryTests {
  @Test func deliversUntilItIsReceived() async throws {
    let apple = try SimulatedApple.forTests()
    let notification = try apple.sign(.emailDisabled, of: Person(named: "Ada"), for: "com.example.app")
    try await Receiver.run(answering: [503, 400, 200]) { receiver, plan in
      let deliveries = await apple.deliver([notification], plan)
      #expect(deliveries.map(\.attempts) == [[.answered(503), .answered(400), .answered(200)]])
      #expect(deliveries.map(\.received) == [1])
      #expect(receiver.bodies == [notification.body, notification.body, notification.body])
    }
  }

  @Test func givesUpAfterItsLastAttempt() async throws {
    let apple = try SimulatedApple.forTests()
    let notification = try apple.sign(.accountDeleted, of: Person(named: "Ada"), for: "com.example.app")
    try await Receiver.run(answering: [503]) { receiver, plan in
      let deliveries = await apple.deliver([notification], plan)
      #expect(deliveries.map(\.attempts) == [[.answered(503), .answered(503), .answered(503)]])
      #expect(deliveries.map(\.received) == [0])
    }
  }

  @Test func deliversDuplicatesAndInReverseOrder() async throws {
    let apple = try SimulatedApple.forTests()
    let ada = Person(named: "Ada")
    let first = try apple.sign(.emailDisabled, of: ada, for: "com.example.app")
    let second = try apple.sign(.emailEnabled, of: ada, for: "com.example.app")
    #expect(first.notification.occurredAt < second.notification.occurredAt)
    try await Receiver.run(answering: [200]) { receiver, plan in
      var plan = plan
      plan.copies = 2
      plan.reversesOrder = true
      plan.delay = .milliseconds(1)
      let deliveries = await apple.deliver([first, second], plan)
      #expect(deliveries.map(\.received) == [2, 2])
      #expect(receiver.bodies == [second.body, second.body, first.body, first.body])
    }
  }

  @Test func saysWhyNobodyAnswered() async throws {
    let apple = try SimulatedApple.forTests()
    // A port of the system's own, where nobody listens: a free one could be another test's by then.
    let url = try #require(HTTPClientURL("http://127.0.0.1:1/apple"))
    let notification = try apple.sign(.emailDisabled, of: Person(named: "Ada"), for: "com.example.app")
    let plan = DeliveryPlan(receiver: url, attempts: 2, pause: .milliseconds(1), deadline: .seconds(300))
    let attempts = await apple.deliver([notification], plan).flatMap(\.attempts)
    #expect(attempts == [.failed(.connect), .failed(.connect)])
  }
}
