import AccountEvents
import AppleSimulator
import EventLoop
import Kafka
import TestSupport
import Testing

/// Events of many accounts, mixed and as consumers believe them, of which some happened earlier than others that stand
/// before them and some at the same time; and who puts them onto the topic.
@Loop
final class EventStream {
  /// The people.
  nonisolated let people: [Person]
  /// Before all of their events.
  nonisolated let beginning: Timestamp
  /// What was sent, in its order.
  private(set) var events: [AccountEvent] = []
  /// How many of them the broker has, and how many it refused.
  private(set) var acknowledged = 0, refused = 0
  /// How many wait for the broker at most: more than the producer keeps, it would refuse.
  private static let room = 10_000
  private let signing = BlockingThread(named: "signing")
  private var random: SeededRandom
  private var isEnding = false
  private var sending: Task<Void, any Error>?

  /// Events of as many people, the same for the same random numbers.
  init(people count: Int, _ random: SeededRandom) {
    self.random = random
    people = (0..<count).map { Person(named: "holder \($0)") }
    beginning = .now - .seconds(3600)
  }

  private func next() throws -> AccountEvent {
    let index = events.count
    let person = people[Int.random(in: people.indices, using: &random)]
    let account = try ConsumerStage.account(person)
    let time = beginning + .milliseconds(Int.random(in: 1...30, using: &random))
    let issuedAt = try #require(Timestamp(seconds: time.milliseconds / 1000 + 5))
    return AccountEvent(
      id: try #require(EventID("event-\(index)")), team: account.team,
      audience: try #require(ClientID(AppleSide.app)), subject: account.subject,
      kind: try Self.kind(of: person, index, &random), occurredAt: time, issuedAt: issuedAt)
  }

  private static func kind(
    of person: Person, _ index: Int, _ random: inout SeededRandom
  ) throws -> AccountEvent.Kind {
    // Each with another address, so that a state says which event it is of.
    let address = try #require(RelayAddress("\(index).\(person.address)"))
    return switch Int.random(in: 0..<20, using: &random) {
    case 0: .accountDelete
    case 1...3: .accountDeletionRequested
    case 4...5: .consentRevoked
    case 6...12: .emailEnabled(address, isPrivate: true)
    default: .emailDisabled(address, isPrivate: true)
    }
  }

  /// Begins to send, so many a second, whether or not the broker is there; at least as many as `count` says, and until
  /// `end`.
  func send(rate: Int, atLeast count: Int, on stage: ConsumerStage) throws {
    let brokers = stage.broker.bootstrapServers
    let producer = try Producer(
      try KafkaConfiguration(properties: [("bootstrap.servers", brokers)]), deadline: .seconds(600), log: { _ in })
    sending = Task(executorPreference: Loop.executor) {
      try await self.send(rate: rate, atLeast: count, on: stage, with: producer)
    }
  }

  private func send(rate: Int, atLeast count: Int, on stage: ConsumerStage, with producer: Producer) async throws {
    let begun = MonotonicTime.now
    while !Task.isCancelled, !isEnding || events.count < count {
      let due = Int(Double((MonotonicTime.now - begun).wholeNanoseconds) / 1e9 * Double(rate)) + 1
      while events.count < due, events.count - acknowledged - refused < Self.room {
        var some: [AccountEvent] = []
        while events.count < due, some.count < 32 {
          some.append(try next())
          events.append(some[some.count - 1])
        }
        // Apple and the service are on this loop, and a signature takes most of a millisecond.
        let records = try await signing.run(throwing: { [some, signer = stage.signer, store = stage.store] in
          try some.map { try ConsumerStage.record(of: $0, signer, store) }
        })
        for record in records {
          producer.send(record) { [self] result in
            if case .success = result { acknowledged += 1 } else { refused += 1 }
          }
        }
      }
      do { try await Loop.sleep(for: .milliseconds(20)) } catch { break }
    }
    _ = await producer.close(within: Task.isCancelled ? .zero : .seconds(600))
  }

  /// Sends no more than it has to, and waits until the broker has all of it.
  func end() async throws {
    isEnding = true
    try await sending?.value
  }

  /// Sends nothing more.
  func stop() { sending?.cancel() }
}
