import AccountEvents
import ConsumerSupport
import EventLoop
import HTTPServer
import Kafka
import Telemetry
import TestSupport
import Testing

@testable import AccountServices

/// What streams read: nothing is left out, nothing comes twice, whatever happens to the topic and however slow they are.
@Loop @Suite(.timeLimit(.minutes(30))) struct EventFeedTests {
  /// A topic in memory, and those who read it.
  @Loop
  private final class MemoryTopic {
    let cluster = MemoryCluster()
    let log = CapturedLog()
    private(set) var sources: [MemoryPartitionSource] = []
    /// Why the cluster does not answer; nil where it does.
    var silence: KafkaError? { didSet { for source in sources { source.silence = silence } } }
    /// What the sources that are made next wait for before they say what the topic held.
    var delay: @Loop () async -> Void = {}
    /// What the sources that are made next wait for when they are closed.
    var closing: @Loop () async -> Void = {}

    func source() -> MemoryPartitionSource {
      let source = MemoryPartitionSource(cluster)
      (source.silence, source.delay, source.closing) = (silence, delay, closing)
      sources.append(source)
      return source
    }

    func put(_ numbers: some Sequence<Int>, in partition: Int32 = 0) {
      for number in numbers { cluster.append(.of(.sample(number)), to: partition, timestamp: Int64(number)) }
      wake()
    }

    func put(value: String?, in partition: Int32 = 0) {
      let name = Topic.accountEvents.name
      cluster.append(KafkaRecord(topic: name, key: nil, value: value.map { Array($0.utf8) }), to: partition)
      wake()
    }

    private func wake() { for source in sources { source.wake() } }
  }

  /// A stream, and what has come of it: the numbers of events, and words for what is none.
  @Loop
  private final class Reader {
    private let feed: EventFeed
    private var cursor: EventCursor
    private var read: [String] = []

    init(_ feed: EventFeed, _ cursor: EventCursor) {
      (self.feed, self.cursor) = (feed, cursor)
      feed.streams += 1
    }

    var position: String { cursor.position.text }

    /// The next ones, so many of them.
    func next(_ count: Int) async throws -> [String] {
      while read.count < count {
        var cursor = cursor
        let page = await feed.next(&cursor, until: .distantFuture)
        try Task.checkCancellation()
        cursor.position = page.start
        if page.isGap { read.append("gap") }
        for record in page.records {
          cursor.position.pass(record.offset, of: record.partition)
          read.append(record.event.map { String($0.id.text.dropFirst("event-".count)) } ?? "nothing")
        }
        self.cursor = cursor
      }
      defer { read.removeFirst(count) }
      return Array(read.prefix(count))
    }
  }

  private func words(_ numbers: some Sequence<Int>) -> [String] { numbers.map { "\($0)" } }

  private func run(
    _ bounds: EventFeed.Bounds = .quick, _ body: @Loop (MemoryTopic, EventFeed) async throws -> Void
  ) async throws {
    let topic = MemoryTopic()
    topic.cluster.make(.events(0))
    let feed = EventFeed({ () throws(KafkaError) in topic.source() }, bounds: bounds, logger: topic.log.logger())
    let reading = Task(executorPreference: Loop.executor) { await feed.run() }
    let result: Result<Void, any Error>
    do { result = .success(try await body(topic, feed)) } catch { result = .failure(error) }
    feed.end()
    reading.cancel()
    await reading.value
    try result.get()
  }

  private func reader(_ feed: EventFeed, behind text: String) throws -> Reader {
    Reader(feed, EventCursor(try #require(EventPosition(text))))
  }

  private func reader(_ feed: EventFeed, at beginning: EventFeed.Beginning) async throws -> Reader {
    // As a stream does: it is counted before it asks.
    feed.streams += 1
    defer { feed.streams -= 1 }
    return Reader(feed, try await feed.cursor(at: beginning))
  }

  @Test func whatHappensFromNowOnComesToAll() async throws {
    try await run { topic, feed in
      topic.put(0..<5)
      let (first, second) = (try await reader(feed, at: .now), try await reader(feed, at: .now))
      #expect(first.position == "1.5")
      topic.put(5..<8)
      #expect(try await first.next(3) == words(5..<8))
      topic.put(8..<9)
      #expect(try await second.next(4) == words(5..<9))
      #expect(try await first.next(1) == ["8"])
      #expect(first.position == "1.9" && second.position == "1.9")
    }
  }

  @Test func aStreamGoesOnBehindEachPositionThatItNamed() async throws {
    try await run { topic, feed in
      topic.put(0..<20)
      let whole = try await reader(feed, at: .oldest)
      var positions = [whole.position]
      for number in 0..<20 {
        #expect(try await whole.next(1) == ["\(number)"])
        positions.append("1.\(String(number + 1, radix: 36))")
      }
      topic.put(20..<25)
      for (read, position) in positions.enumerated() {
        let resumed = try reader(feed, behind: position)
        #expect(try await resumed.next(25 - read) == words(read..<25))
      }
    }
  }

  @Test func aStreamThatFallsBehindReadsOnWithoutAGap() async throws {
    var bounds = EventFeed.Bounds.quick
    (bounds.newest, bounds.page, bounds.batch) = (4, 2, 3)
    try await run(bounds) { topic, feed in
      let (slow, fast) = (try await reader(feed, at: .now), try await reader(feed, at: .now))
      topic.put(0..<1)
      #expect(try await slow.next(1) == ["0"])
      for number in 1..<50 {
        topic.put(number..<number + 1)
        #expect(try await fast.next(number == 1 ? 2 : 1).last == "\(number)")
      }
      #expect(try await slow.next(49) == words(1..<50))
      topic.put(50..<60)
      #expect(try await slow.next(10) == words(50..<60))
      #expect(try await fast.next(10) == words(50..<60))
    }
  }

  @Test func manyStreamsBehindAreServedInTurns() async throws {
    var bounds = EventFeed.Bounds.quick
    (bounds.newest, bounds.page, bounds.batch) = (4, 2, 5)
    try await run(bounds) { topic, feed in
      topic.put(0..<100)
      try await withThrowingTaskGroup { group in
        for begun in 0..<10 {
          let (resumed, expected) = (try reader(feed, behind: "1.\(begun)"), words(begun..<100))
          group.addTask(executorPreference: Loop.executor) {
            let read = try await resumed.next(expected.count)
            #expect(read == expected)
          }
        }
        try await group.waitForAll()
      }
      // One follows the end, one reads what came before.
      #expect(topic.sources.count == 2)
    }
  }

  @Test func whatRetentionHasTakenIsAGap() async throws {
    try await run { topic, feed in
      topic.put(0..<10)
      topic.cluster.deleteRecords(of: .events(0), before: 7)
      let late = try reader(feed, behind: "1.3")
      #expect(try await late.next(4) == ["gap", "7", "8", "9"])
      #expect(late.position == "1.a")
      let inTime = try reader(feed, behind: "1.7")
      #expect(try await inTime.next(3) == ["7", "8", "9"])
    }
  }

  @Test func whatRetentionTakesWhileAStreamReadsIsAGap() async throws {
    var bounds = EventFeed.Bounds.quick
    (bounds.newest, bounds.batch) = (2, 2)
    try await run(bounds) { topic, feed in
      topic.put(0..<10)
      let resumed = try reader(feed, behind: "1.0")
      #expect(try await resumed.next(2) == ["0", "1"])
      topic.cluster.deleteRecords(of: .events(0), before: 6)
      #expect(try await resumed.next(5) == ["gap", "6", "7", "8", "9"])
    }
  }

  @Test(arguments: ["1.zz", "1.0.0"])
  func aPositionThatTheTopicHasNeverHadIsAGap(_ text: String) async throws {
    try await run { topic, feed in
      topic.put(0..<3)
      let stream = try reader(feed, behind: text)
      #expect(try await stream.next(4) == ["gap", "0", "1", "2"])
    }
  }

  @Test func aTopicThatIsMadeAnewIsAGap() async throws {
    try await run { topic, feed in
      topic.put(0..<10)
      let stream = try await reader(feed, at: .now)
      topic.cluster.loseRecords(of: .events(0), from: 0)
      topic.put(20..<22)
      #expect(try await stream.next(3) == ["gap", "20", "21"])
      topic.put(22..<23)
      #expect(try await stream.next(1) == ["22"])
    }
  }

  /// librdkafka may need for ever to end one.
  @Test func aReaderThatDoesNotEndKeepsNoStreamWaiting() async throws {
    try await run { topic, feed in
      let end = Signal()
      topic.closing = { await end.wait() }
      topic.put(0..<10)
      let stream = try await reader(feed, at: .now)
      topic.closing = {}
      topic.cluster.loseRecords(of: .events(0), from: 0)
      topic.put(20..<22)
      #expect(try await stream.next(3) == ["gap", "20", "21"])
      end.fire()
    }
  }

  /// One stream waits for its turn, which another one has all the while.
  @Test func aTopicThatIsMadeAnewIsAGapForWhoeverWasFarther() async throws {
    var bounds = EventFeed.Bounds.quick
    bounds.batch = 2
    try await run(bounds) { topic, feed in
      topic.put(0..<10)
      let (stream, behind) = (try await reader(feed, at: .now), try reader(feed, behind: "1.0"))
      #expect(try await behind.next(2) == ["0", "1"])
      let gate = Signal()
      topic.sources[1].gate = { await gate.wait() }
      let waiting = Task(executorPreference: Loop.executor) { try await behind.next(2) }
      try await until { topic.sources[1].questions == 2 }
      topic.cluster.loseRecords(of: .events(0), from: 0)
      topic.put(20..<21)
      try await until { topic.sources.count == 3 && topic.sources[2].questions > 0 }
      #expect(try await stream.next(1) == ["gap"])
      topic.sources[1].gate = {}
      gate.fire()
      #expect(try await stream.next(1) == ["20"])
      #expect(try await waiting.value == ["gap", "20"])
      topic.put(21..<22)
      #expect(try await stream.next(1) == ["21"])
    }
  }

  /// What the follower is told lies behind what a stream has read since it asked.
  @Test(arguments: [false, true])
  func aTopicThatGrowsWhileItIsAskedForItsEndIsNoGap(_ isMadeAnew: Bool) async throws {
    try await run { topic, feed in
      topic.put(0..<3)
      let answer = Signal()
      topic.delay = { await answer.wait() }
      let stream = try reader(feed, behind: "1.1")
      try await until { topic.sources.count == 1 }
      topic.delay = {}
      #expect(try await stream.next(2) == ["1", "2"])
      topic.put(3..<5)
      #expect(try await stream.next(2) == ["3", "4"])
      if isMadeAnew {
        topic.cluster.loseRecords(of: .events(0), from: 0)
        topic.put(20..<22)
      }
      answer.fire()
      if isMadeAnew { #expect(try await stream.next(3) == ["gap", "20", "21"]) }
      topic.put(5..<6)
      #expect(try await stream.next(1) == ["5"])
    }
  }

  /// The reader of what came before stands where the stream does, which is at the end of what there was.
  @Test func aPartitionThatComesWhileAStreamIsOpenIsReadFromItsBeginning() async throws {
    var bounds = EventFeed.Bounds.quick
    bounds.survey = .milliseconds(5)
    try await run(bounds) { topic, feed in
      topic.put(0..<3)
      let stream = try reader(feed, behind: "1.1")
      #expect(try await stream.next(2) == ["1", "2"])
      topic.put(10..<12, in: 1)
      #expect(try await stream.next(2) == ["10", "11"])
      topic.put(3..<4)
      #expect(try await stream.next(1) == ["3"])
      #expect(stream.position == "1.4.2")
    }
  }

  @Test func aPartitionThatHasComeSinceIsReadFromItsBeginning() async throws {
    try await run { topic, feed in
      topic.put(0..<3)
      topic.put(10..<12, in: 1)
      let stream = try reader(feed, behind: "1.3")
      #expect(try await stream.next(2) == ["10", "11"])
      topic.put(12..<13, in: 1)
      topic.put(3..<4)
      #expect(try await Set(stream.next(2)) == ["12", "3"])
      #expect(stream.position == "1.4.3")
    }
  }

  @Test func offsetsThatNobodyWroteToAreNoGap() async throws {
    try await run { topic, feed in
      topic.put(0..<2)
      let stream = try await reader(feed, at: .now)
      // A record that is not handed over, as one of a transaction.
      topic.cluster.skip(.events(0))
      topic.put(3..<5)
      #expect(try await stream.next(2) == ["3", "4"])
      #expect(try await reader(feed, behind: "1.0").next(4) == ["0", "1", "3", "4"])
      #expect(stream.position == "1.5")
    }
  }

  @Test func whatIsNoEventIsPassedOver() async throws {
    try await run { topic, feed in
      let stream = try await reader(feed, at: .now)
      topic.put(value: "{")
      topic.put(value: nil)
      topic.put(value: #"{"type":"account-reborn"}"#)
      topic.put(3..<4)
      #expect(try await stream.next(4) == ["nothing", "nothing", "nothing", "3"])
      #expect(stream.position == "1.4")
      #expect(topic.log.lines == [])
    }
  }

  @Test func aStreamBeginsAtATime() async throws {
    try await run { topic, feed in
      topic.put(0..<10)
      let (late, early) = (
        try await reader(feed, at: .time(.sample(70))), try await reader(feed, at: .time(.sample(0)))
      )
      #expect(late.position == "1.a" && early.position == "1.0")
      #expect(try await reader(feed, at: .time(.sample(7))).next(3) == ["7", "8", "9"])
    }
  }

  @Test func streamsWaitWhileKafkaIsAway() async throws {
    var bounds = EventFeed.Bounds.quick
    bounds.patience = .milliseconds(20)
    try await run(bounds) { topic, feed in
      topic.put(0..<3)
      topic.silence = KafkaError(.brokerUnavailable, detail: "away")
      await #expect(throws: KafkaError.self) { try await reader(feed, at: .now) }
      await #expect(throws: KafkaError.self) { try await reader(feed, at: .oldest) }
      let resumed = try reader(feed, behind: "1.1")
      try await until { topic.log.lines.count { $0.contains("wait for Kafka") } == 1 }
      topic.silence = nil
      #expect(try await resumed.next(2) == ["1", "2"])
      // What fails for a moment is asked for again, by the same reader or by another one.
      for code in [KafkaError.Code.brokerUnavailable, .fatal] {
        for source in topic.sources { source.fault = KafkaError(code, detail: "for a moment") }
        topic.put(3..<5)
        #expect(try await resumed.next(2) == ["3", "4"])
      }
    }
  }

  /// Not even where the stream would begin.
  @Test(arguments: [nil, "from=now", "from=beginning", "from=2027-01-20T09:00:00Z"])
  func nothingIsReadForTheHeadOfAnAnswer(_ query: String?) async throws {
    try await run { topic, feed in
      topic.put(0..<3)
      let caller = AccountsSettings.Caller(name: "shop", clients: [AccountEvent.sample(1).audience], tokens: [])
      let streams = EventStreams(
        feed, AccountSight(teams: [:], groups: ConsentGroups([:])),
        limits: .init(perCaller: 1, connections: 4, descriptors: 1024), metrics: EventStreamMetrics(MetricsRegistry()),
        logger: topic.log.logger(), identify: { _ in preconditionFailure("nothing is told") })
      for last in [nil, "1.2"] {
        let answer = try await streams.stream(to: caller, after: last, query, isHead: true)
        #expect(answer.status == 200)
      }
      await #expect(throws: Problem.self) { try await streams.stream(to: caller, after: nil, "from=", isHead: true) }
      #expect(topic.sources.isEmpty && feed.streams == 0)
    }
  }

  /// Of a thousand connections that are allowed there may be fewer descriptors.
  @Test(arguments: [(1024, 100_000, 512), (1024, 300, 75), (1, 100_000, 1), (1024, 1, 1)])
  func allStreamsHaveHalfOfTheConnectionsThatThereCanBe(_ connections: Int, _ descriptors: Int, _ all: Int) {
    #expect(EventStreams.Limits(perCaller: 4, connections: connections, descriptors: descriptors).all == all)
  }

  @Test func nothingIsReadForNobody() async throws {
    try await run { topic, feed in
      await turn()
      #expect(topic.sources.isEmpty)
      _ = try await reader(feed, at: .now)
      #expect(topic.sources.count == 1)
    }
  }

  @Test func theEndAndACancellationEndTheWait() async throws {
    try await run { topic, feed in
      let (ended, cancelled) = (try await reader(feed, at: .now), try await reader(feed, at: .now))
      let task = Task(executorPreference: Loop.executor) { _ = try await cancelled.next(1) }
      await turn()
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      feed.end()
      var cursor = EventCursor(try #require(EventPosition(ended.position)))
      #expect(await feed.next(&cursor, until: .distantFuture).records == [])
    }
  }
}

extension EventFeed.Bounds {
  /// Bounds with which nobody has to wait.
  fileprivate static var quick: Self {
    var bounds = Self()
    bounds.pause = .milliseconds(5)
    // However busy the machine is, readers are those that a test has counted.
    bounds.rest = .seconds(3600)
    return bounds
  }
}
