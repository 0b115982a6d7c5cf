import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import Telemetry
import TestSupport
import Testing

/// What is read of the audited topics, and what is said of what is not there.
@Loop @Suite(.timeLimit(.minutes(30))) struct AuditReaderTests {
  private let cluster = MemoryCluster()
  private let events = TopicPartition.events(0)
  private let outcomes = TopicPartition(Topic.outcomes.name, 0)
  private let quarantine = TopicPartition(Topic.quarantine.name, 0)
  private let log = CapturedLog()
  private let registry = MetricsRegistry()

  /// A reader that looks at the cluster before each batch.
  private func reader(
    _ source: MemoryPartitionSource, from positions: [TopicPartition: CommittedOffset] = [:],
    surveyingEvery pause: Duration = .zero
  ) -> AuditReader {
    AuditReader(
      source, from: positions, surveyingEvery: pause, now: { AuditSamples.loggedAt },
      metrics: AuditMetrics(registry, witnesses: []), logger: log.logger())
  }

  private func put(_ numbers: ClosedRange<Int>, in place: TopicPartition, at time: Int64 = 1000) {
    for number in numbers {
      cluster.append(
        KafkaRecord(topic: place.topic, key: nil, value: Array("\(number)".utf8)), to: place.partition,
        timestamp: time + Int64(number))
    }
  }

  /// The offsets of the records of a batch, and its gaps.
  private func words(_ batch: AuditReader.Batch) -> [String] {
    batch.steps.map { step in
      switch step {
      case .record(let record, _): "\(record.position.offset)"
      case .gap(let gap): "\(gap.cause) \(gap.from)-\(gap.to)"
      }
    }
  }

  private func gaps(_ cause: String) -> String? {
    let text = String(decoding: registry.render(), as: UTF8.self)
    let name = "siwa_audit_log_gaps_total{why=\"\(cause)\"} "
    return text.split(separator: "\n").first { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) }
  }

  @Test func readsAllAuditedTopicsFromTheirBeginning() async throws {
    put(0...2, in: events)
    put(0...1, in: TopicPartition.events(1))
    for topic in AuditedTopic.all.dropFirst() { put(0...0, in: TopicPartition(topic.topic.name, 0)) }
    put(0...3, in: TopicPartition(Topic.emailRelay.name, 0))
    let batch = try await reader(MemoryPartitionSource(cluster)).next()
    #expect(batch.steps.count == 3 + 2 + AuditedTopic.all.count - 1)
    #expect(batch.positions[events] == CommittedOffset(3, note: "1 1000 1002"))
    #expect(batch.positions.count == 1 + AuditedTopic.all.count)
    #expect(log.lines == [])
  }

  @Test func goesOnWhereItIsTold() async throws {
    put(0...5, in: events)
    let batch = try await reader(
      MemoryPartitionSource(cluster), from: [events: CommittedOffset(4, note: "4 1003 1003")]
    )
    .next()
    #expect(words(batch) == ["4", "5"])
    #expect(batch.positions[events]?.offset == 6)
  }

  @Test func whatRetentionTookWhileNobodyReadIsAGap() async throws {
    put(0...9, in: events)
    cluster.deleteRecords(of: events, before: 7)
    let source = MemoryPartitionSource(cluster)
    let reader = reader(source, from: [events: CommittedOffset(4, note: "4 1003 1003")])
    let first = try await reader.next()
    #expect(words(first) == ["missing 4-7"] && first.positions[events]?.offset == 7)
    #expect(words(try await reader.next()) == ["7", "8", "9"])
    #expect(gaps("missing") == "1")
    #expect(log.lines.contains { $0.contains("\"level\":\"error\"") && $0.contains("records are missing") })
  }

  @Test func whatRetentionTookBeforeTheLogBeganIsAGapToo() async throws {
    put(0...9, in: outcomes)
    cluster.deleteRecords(of: outcomes, before: 7)
    let reader = reader(MemoryPartitionSource(cluster))
    #expect(words(try await reader.next()) == ["missing 0-7"])
    #expect(words(try await reader.next()) == ["7", "8", "9"])
    // It is nothing that the log has lost.
    #expect(gaps("missing") == "0")
    #expect(log.lines.allSatisfy { !$0.contains("\"level\":\"error\"") })
  }

  @Test func aHoleThatIsReadIsAGap() async throws {
    put(0...2, in: events)
    let source = MemoryPartitionSource(cluster)
    let reader = reader(source, surveyingEvery: .seconds(3600))
    #expect(words(try await reader.next()) == ["0", "1", "2"])
    put(3...9, in: events)
    cluster.deleteRecords(of: events, before: 5)
    #expect(words(try await reader.next()) == ["missing 3-5", "5", "6", "7", "8", "9"])
  }

  /// Compaction leaves holes: nothing is lost.
  @Test func aHoleInATopicOfLettersIsNone() async throws {
    put(0...9, in: quarantine)
    cluster.deleteRecords(of: quarantine, before: 5)
    let source = MemoryPartitionSource(cluster)
    let reader = reader(source, surveyingEvery: .seconds(3600))
    #expect(words(try await reader.next()) == ["5", "6", "7", "8", "9"])
    put(10...15, in: quarantine)
    cluster.deleteRecords(of: quarantine, before: 13)
    #expect(words(try await reader.next()) == ["13", "14", "15"])
    #expect(log.lines == [])
  }

  @Test func aTopicThatIsMadeAnewIsReadFromItsBeginning() async throws {
    put(0...5, in: events)
    let source = MemoryPartitionSource(cluster)
    let reader = reader(source)
    _ = try await reader.next()
    cluster.loseRecords(of: events, from: 0)
    put(0...1, in: events, at: 2000)
    let gap = try await reader.next()
    #expect(words(gap) == ["begunAnew 6-0"] && gap.positions[events]?.offset == 0)
    #expect(words(try await reader.next()) == ["0", "1"])
    #expect(gaps("begun-anew") == "1")
  }

  /// It holds more records than were read of it before, and only their times tell.
  @Test func aTopicThatWasMadeAnewAndHasGrownIsReadFromItsBeginning() async throws {
    put(0...5, in: events, at: 2000)
    let reader = reader(
      MemoryPartitionSource(cluster), from: [events: CommittedOffset(3, note: "3 1002 1002")])
    #expect(words(try await reader.next()) == ["begunAnew 3-0"])
    #expect(words(try await reader.next()) == ["0", "1", "2", "3", "4", "5"])
  }

  @Test func aTopicOfLettersThatIsMadeAnewLeavesNoGap() async throws {
    put(0...5, in: quarantine)
    let reader = reader(MemoryPartitionSource(cluster), from: [quarantine: CommittedOffset(9, note: "9 1008 1008")])
    #expect(words(try await reader.next()) == ["0", "1", "2", "3", "4", "5"])
    #expect(log.lines.contains { $0.contains("a topic of letters begins anew") })
  }

  /// A client may bring a record again without anything having begun anew.
  @Test func aRecordThatComesAgainIsPassedOver() async throws {
    put(0...5, in: events)
    let source = MemoryPartitionSource(cluster)
    let reader = reader(source, surveyingEvery: .seconds(3600))
    #expect(words(try await reader.next()).count == 6)
    put(6...7, in: events)
    source.bringAgain(events, from: 3)
    #expect(words(try await reader.next()) == [])
    // The cluster was asked, and reading goes on behind what was read.
    #expect(words(try await reader.next()) == ["6", "7"])
    #expect(gaps("begun-anew") == "0")
  }

  @Test func aTopicThatShrinksWhileItIsReadBeginsAnew() async throws {
    put(0...5, in: events)
    let source = MemoryPartitionSource(cluster)
    let reader = reader(source, surveyingEvery: .seconds(3600))
    _ = try await reader.next()
    cluster.loseRecords(of: events, from: 2)
    put(20...20, in: events)
    source.bringAgain(events, from: 2)
    #expect(words(try await reader.next()) == [])
    #expect(words(try await reader.next()) == ["begunAnew 6-0"])
    #expect(words(try await reader.next()) == ["0", "1", "2"])
  }

  @Test func partitionsAndTopicsThatComeLaterAreRead() async throws {
    put(0...1, in: events)
    let source = MemoryPartitionSource(cluster)
    let reader = reader(source)
    #expect(words(try await reader.next()) == ["0", "1"])
    put(0...0, in: TopicPartition.events(7))
    put(0...2, in: outcomes)
    #expect(words(try await reader.next()).sorted() == ["0", "0", "1", "2"])
    let assignments = source.assignments
    put(2...2, in: events)
    #expect(words(try await reader.next()) == ["2"])
    #expect(source.assignments == assignments, "nothing new, nothing assigned")
  }

  @Test func aClusterThatIsAwayIsNotReadyAndNothingIsLost() async throws {
    let source = MemoryPartitionSource(cluster)
    let reader = reader(source)
    // Without any topic nobody can begin.
    await #expect(throws: KafkaError.self) { try await reader.next() }
    put(0...1, in: events)
    source.silence = KafkaError(.brokerUnavailable, detail: "away")
    await #expect(throws: KafkaError.self) { try await reader.next() }
    #expect(reader.silence?.detail == "away")
    source.silence = nil
    #expect(words(try await reader.next()) == ["0", "1"])
    #expect(reader.silence == nil)
    // Once something is read, reading goes on as long as it can.
    source.silence = KafkaError(.brokerUnavailable, detail: "away")
    put(2...2, in: events)
    #expect(words(try await reader.next()) == ["2"])
    #expect(reader.silence?.detail == "away")
    source.fault = KafkaError(.brokerUnavailable, detail: "away")
    await #expect(throws: KafkaError.self) { try await reader.next() }
  }

  @Test func saysHowManyRecordsLieBefore() async throws {
    put(0...9, in: events)
    let source = MemoryPartitionSource(cluster)
    source.most = 4
    let reader = reader(source)
    _ = try await reader.next()
    #expect(reader.lag(of: .events) == 6 && reader.lag(of: .outcomes) == 0)
    let text = String(decoding: registry.render(), as: UTF8.self)
    #expect(text.contains(#"siwa_audit_log_lag{topic="apple.account-events.v1"} 6"#))
  }
}
