import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Foundation
import Kafka
import TestSupport
import Testing

/// A replay, between a source and a destination that a test plays.
@Loop @Suite struct ReplayTests {
  /// Events 0 to 9, of two people in turn, of which every third is a deletion: five in each of two partitions.
  private nonisolated static let events: [ConsumedRecord] = (0..<10).map { number in
    let kind: AccountEvent.Kind = number.isMultiple(of: 3) ? .accountDelete : .consentRevoked
    let record = KafkaRecord.of(.sample(number, of: number.isMultiple(of: 2) ? "ada" : "bob", kind))
    return ConsumedRecord(
      topic: record.topic, position: KafkaPosition(partition: Int32(number % 2), offset: Int64(number / 2)),
      key: record.key, value: record.value, headers: record.headers, timestamp: 1000 + Int64(number))
  }
  private nonisolated static let all = ReplayFilter(keys: nil, event: nil, type: nil)
  private nonisolated static let whole: [Int32: Range<Int64>] = [0: 0..<5, 1: 0..<5]

  private final class Source: ReplaySource {
    private var pages: [[ConsumedRecord]]
    private(set) var isClosed = false
    private var left: [Int32: Range<Int64>] = [:]

    init(_ records: [ConsumedRecord] = ReplayTests.events, page: Int = 4) {
      pages = stride(from: 0, to: records.count, by: page).map { Array(records[$0..<min($0 + page, records.count)]) }
    }

    func held() async throws -> [Int32: Range<Int64>] { ReplayTests.whole }
    func offsets(since time: Timestamp) async throws -> [Int32: Int64] { [:] }
    func begin(_ offsets: [Int32: Range<Int64>]) async throws { left = offsets }

    func next() async throws -> [ConsumedRecord]? {
      if isClosed || pages.isEmpty { return nil }
      return pages.removeFirst().filter { left[$0.position.partition]?.contains($0.position.offset) ?? false }
    }

    func close() async { isClosed = true }
  }

  private final class Destination: ReplayDestination {
    private(set) var taken: [ConsumedRecord] = []
    /// The events that it does not take.
    var refused: Set<String> = []
    var onTake: (@Loop () async -> Void)?

    func take(_ records: [ConsumedRecord]) async throws(ReplayFailure) {
      await onTake?()
      let failed = records.filter { refused.contains($0.event) }
      taken += records.filter { !refused.contains($0.event) }
      if !failed.isEmpty { throw ReplayFailure(of: failed, KafkaError(.recordTooLarge, detail: "told to")) }
    }
  }

  private func replay(
    _ source: Source, _ filter: ReplayFilter = all, atMost most: Int64 = .max,
    of offsets: [Int32: Range<Int64>] = whole
  ) -> Replay { Replay(of: offsets, from: source, .events, filter, atMost: most) }

  struct Choice: Sendable {
    let filter: ReplayFilter
    let events: [Int]
  }

  private nonisolated static let ada = Array("A1B2C3D4E5/ada".utf8)

  @Test(
    arguments: [
      Choice(filter: all, events: Array(0..<10)),
      Choice(filter: ReplayFilter(keys: [ada], event: nil, type: nil), events: [0, 2, 4, 6, 8]),
      Choice(filter: ReplayFilter(keys: [], event: nil, type: nil), events: []),
      Choice(filter: ReplayFilter(keys: nil, event: EventID("event-7"), type: nil), events: [7]),
      Choice(filter: ReplayFilter(keys: nil, event: EventID("event"), type: nil), events: []),
      Choice(filter: ReplayFilter(keys: nil, event: nil, type: "account-delete"), events: [0, 3, 6, 9]),
      Choice(filter: ReplayFilter(keys: [ada], event: nil, type: "account-delete"), events: [0, 6]),
      Choice(filter: ReplayFilter(keys: [ada], event: EventID("event-3"), type: nil), events: []),
    ])
  func replaysWhatIsMeantInItsOrder(_ choice: Choice) async throws {
    let (source, destination) = (Source(), Destination())
    let replay = replay(source, choice.filter)
    try await replay.run(to: destination) { _ in }
    #expect(destination.taken.map(\.event) == choice.events.map { "event-\($0)" })
    #expect(replay.left.isEmpty && replay.progress.read == 10 && replay.progress.done == 10)
    #expect(replay.progress.replayed == Int64(choice.events.count) && source.isClosed)
  }

  @Test func whatFollowedFromAnEventIsFoundByIt() throws {
    let event = AccountEvent.sample(1)
    let hash = try #require(AccountHash(Array(repeating: 7, count: 32)))
    let outcome = EventRecord(
      AccountOutcome(
        account: hash, name: .sessionsEnded, cause: AccountOutcome.Cause(event), consumer: "token-revoker",
        doneAt: .sample(5)))
    let relay = EventRecord(
      RelayRecord(
        account: event.account, state: RelayState(status: .enabled, address: nil, isPrivate: false, since: .sample(1)),
        event: event.id))
    func standing(_ record: EventRecord) -> ConsumedRecord {
      ConsumedRecord(
        topic: record.topic.name, position: KafkaPosition(partition: 0, offset: 0), key: record.key,
        value: record.value, headers: record.headers.map { KafkaHeader($0.name, $0.value) }, timestamp: nil)
    }
    let nothing = EventRecord(
      AccountOutcome(
        account: hash, name: .noEffect, cause: AccountOutcome.Cause(event), consumer: "data-eraser", doneAt: .sample(5))
    )
    for (record, topic, type) in [
      (outcome, ReplayedTopic.outcomes, "sessions-ended"), (nothing, .outcomes, "no-effect"),
      (relay, .emailRelay, "email-relay"),
    ] {
      #expect(
        ReplayFilter(keys: [try #require(record.key)], event: event.id, type: type).lets(standing(record), of: topic))
      #expect(!ReplayFilter(keys: nil, event: AccountEvent.sample(2).id, type: nil).lets(standing(record), of: topic))
    }
    let facts = ReplayedTopic.outcomes.facts(of: standing(outcome))
    #expect(facts.source == "token-revoker" && facts.team == nil)
  }

  @Test func asManyAsThereMayBeAndTheRestIsLeft() async throws {
    let destination = Destination()
    let replay = replay(Source(), atMost: 5)
    try await replay.run(to: destination) { _ in }
    #expect(destination.taken.map(\.event) == (0..<5).map { "event-\($0)" })
    #expect(replay.left == [0: 3..<5, 1: 2..<5] && replay.progress.read == 5)
  }

  @Test func whereItIsStoppedItGoesOnWithoutLeavingAnyOut() async throws {
    let destination = Destination()
    let first = replay(Source())
    destination.onTake = { await first.stop() }
    try await first.run(to: destination) { _ in }
    #expect(destination.taken.count == 4 && first.left == [0: 2..<5, 1: 2..<5] && !first.isComplete)
    destination.onTake = nil
    let second = replay(Source(), of: first.left)
    try await second.run(to: destination) { _ in }
    #expect(destination.taken.map(\.event) == (0..<10).map { "event-\($0)" } && second.left.isEmpty)
  }

  @Test func whatIsStoppedAtItsLastRecordHasNothingLeftToDo() async throws {
    let destination = Destination()
    let whole = replay(Source(page: 10))
    destination.onTake = { await whole.stop() }
    try await whole.run(to: destination) { _ in }
    #expect(destination.taken.count == 10 && whole.isComplete)
    let limited = replay(Source(), atMost: 4)
    destination.onTake = { await limited.stop() }
    try await limited.run(to: destination) { _ in }
    #expect(limited.left == [0: 2..<5, 1: 2..<5] && limited.isComplete)
  }

  @Test func whatTheDestinationRefusesIsNotPassedOver() async throws {
    let destination = Destination()
    destination.refused = ["event-6"]
    let replay = replay(Source())
    let failure = await #expect(throws: ReplayFailure.self) { try await replay.run(to: destination) { _ in } }
    #expect(failure?.first == [0: 3] && failure?.count == 1)
    // The other partition is further.
    #expect(replay.left == [0: 3..<5, 1: 4..<5] && replay.progress.replayed == 7)
    destination.refused = []
    try await self.replay(Source(), of: replay.left).run(to: destination) { _ in }
    #expect(
      Set(destination.taken.map(\.event)).count == 10
        && destination.taken.filter { $0.position.partition == 0 }
          .map(\.event) == ["event-0", "event-2", "event-4", "event-6", "event-8"]
    )
  }

  @Test func whatCompactionHasTakenFromTheEndIsNotWaitedFor() async throws {
    let replay = replay(Source(), of: [0: 0..<5, 1: 0..<9])
    try await replay.run(to: Destination()) { _ in }
    #expect(replay.left.isEmpty && replay.progress.done == 14 && replay.progress.total == 14)
  }

  @Test(
    arguments: [
      (Topic.accountEvents.name, false), (Topic.outcomes.name, false), (Topic.signingKeys.name, false),
      (Topic.retries(of: "data-eraser").name, false), (Topic.deadLetters(of: "newsletter").name, false),
      ("apple.account-events.copy.v1", true), ("shop.events", true), ("apple.account-events..retry.v1", true),
    ])
  func onlyTopicsOfOnesOwnAreReplayedTo(_ topic: String, _ isFine: Bool) {
    #expect((ReplayTarget.refusal(of: topic, for: .accountEvents) == nil) == isFine)
    #expect(ReplayTarget.refusal(of: "shop.events", for: Topic(name: "shop.events")) != nil)
  }

  // MARK: The journal

  @Test func aJournalIsGoneOnWithByItsOwnReplayAlone() throws {
    let files = TemporaryDirectory()
    let path = files.path + "/progress"
    #expect(try ReplayJournal(of: ["events"], at: path) == nil)
    var journal = ReplayJournal(of: ["events", "A1B2C3D4E5/ada"], left: [0: 3..<5, 11: 0..<9_007_199_254_740_991])
    try journal.write(to: path)
    #expect(try ReplayJournal(of: ["events", "A1B2C3D4E5/ada"], at: path) == journal)
    journal.left = [:]
    try journal.write(to: path)
    #expect(try ReplayJournal(of: ["events", "A1B2C3D4E5/ada"], at: path)?.left.isEmpty == true)
    #expect(try !String(contentsOfFile: path, encoding: .utf8).contains("ada"), "it names nobody")
    for words in [["events"], ["events", "A1B2C3D4E5/bob"], ["eventsA1B2C3D4E5/ada"]] {
      let fault = #expect(throws: ReplayJournal.Fault.self) { _ = try ReplayJournal(of: words, at: path) }
      #expect(fault?.description == "\(path): of another replay")
    }
  }

  /// A topic that was made anew may end before the offsets that are left: none of its records are passed over for that.
  @Test func aJournalIsOfNoTopicThatEndsBeforeWhatIsLeft() throws {
    let journal = ReplayJournal(of: ["events"], left: [0: 3..<5, 1: 7..<9])
    for held in [[0: 0..<5, 1: 0..<9], [0: 4..<12, 1: 9..<9], [0: 0..<5, 2: 0..<1]] as [[Int32: Range<Int64>]] {
      try journal.expect(in: held, at: "progress")
    }
    for (held, partition) in [([0: 0..<4, 1: 0..<9], "0 ends at 4"), ([0: 0..<5, 1: 0..<3], "1 ends at 3")]
      as [([Int32: Range<Int64>], String)]
    {
      let fault = #expect(throws: ReplayJournal.Fault.self) { try journal.expect(in: held, at: "progress") }
      #expect(fault?.description == "progress: of another topic: partition \(partition), before what is left")
    }
  }

  @Test func boundsHaveTheSameWordsWhereTheyAreTheSame() {
    let bounds: [TopicSection.Bound] = [
      .edge, .time(.sample(1)), .time(.sample(2)), .offsets([0: 1]), .offsets([1: 0]), .offsets([0: 1, 1: 0]),
    ]
    #expect(Set(bounds.map(\.words)).count == bounds.count)
    #expect(TopicSection.Bound.offsets([3: 4, 1: 2]).words == "1/2 3/4")
  }

  @Test(
    arguments: [
      "", "no JSON", "[]", #"{"left":{"0":[1]}}"#, #"{"left":{"0":[2,1]}}"#, #"{"left":{"0":[-1,1]}}"#,
      #"{"left":{"x":[1,2]}}"#, #"{"left":{"0":["1",2]}}"#, #"{"replay":"another","left":{}}"#,
    ])
  func whatIsNoJournalIsSaid(_ text: String) {
    let files = TemporaryDirectory()
    #expect(throws: ReplayJournal.Fault.self) {
      _ = try ReplayJournal(of: ["events"], at: files.write("progress", text))
    }
  }
}

extension ConsumedRecord {
  fileprivate var event: String {
    headers.first { $0.name == "ce_id" }?.value.map { String(decoding: $0, as: UTF8.self) } ?? ""
  }
}
