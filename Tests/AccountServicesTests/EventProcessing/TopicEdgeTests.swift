import AccountEvents
import AccountServices
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// What a topic no longer has, and what begins anew: nothing is passed over unseen.
@Loop @Suite(.timeLimit(.minutes(5))) struct TopicEdgeTests {
  private let place = TopicPartition.events(0)
  private func missing(_ rig: ProcessorRig) -> String? { rig.metric("siwa_consumer_records_missing_total") }
  private func begunAnew(_ rig: ProcessorRig) -> String? { rig.metric("siwa_consumer_partitions_begun_anew_total") }

  /// Puts the events of people of those numbers onto the topic, so many seconds ago.
  private func put(_ numbers: ClosedRange<Int>, age: Int, _ rig: ProcessorRig) {
    for number in numbers { rig.put(.of(.sample(number, of: "user-\(number)")), age: .seconds(age)) }
  }

  private func names(_ numbers: ClosedRange<Int>) -> [String] { numbers.map { "event-\($0)" } }

  /// A process that has processed the first three events, and committed that.
  private func three(_ calls: Calls) async throws -> ProcessorRig {
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    put(1...3, age: 90, rig)
    try await rig.untilIdle()
    await rig.drain()
    #expect(rig.cluster.commitments[place] == CommittedOffset(3, note: "1 1799999910000 1799999910000"))
    return rig
  }

  @Test func whatRetentionTookWhileNobodyReadIsAnErrorAndTheRestIsProcessed() async throws {
    let calls = Calls()
    let first = try await three(calls)
    put(4...8, age: 60, first)
    first.cluster.deleteRecords(of: place, before: 6)
    let rig = try await ProcessorRig(calls.consumer(), beside: first)
    try await rig.assign(0)
    #expect(calls.events == names(1...3) + names(7...8))
    #expect(missing(rig) == "3" && begunAnew(rig) == "0")
    let line = try #require(rig.captured.lines.first { $0.contains("records are missing") })
    #expect(line.contains(#""kafka.firstMissing":3"#) && line.contains(#""kafka.lastMissing":5"#))
    #expect(line.contains(#""level":"error""#) && line.contains(#""kafka.partition":0"#))
    await rig.drain()
    #expect(rig.committed() == 8)
  }

  @Test func whatIsMissingIsToldOnceWhereNothingIsLeftToRead() async throws {
    let first = try await three(Calls())
    put(4...8, age: 60, first)
    first.cluster.deleteRecords(of: place, before: 8)
    let second = try await ProcessorRig(Calls().consumer(), beside: first)
    try await second.assign(0)
    #expect(missing(second) == "5")
    try await second.advance(by: .seconds(1))
    #expect(second.committed() == 8)
    await second.drain()
    let third = try await ProcessorRig(Calls().consumer(), beside: first)
    try await third.assign(0)
    #expect(missing(third) == "0")
    await third.drain()
  }

  @Test func whatRetentionTakesWhileAPartitionIsReadIsAnError() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    rig.source.most = 1
    try await rig.assign(0)
    put(1...2, age: 90, rig)
    try await rig.untilIdle()
    try rig.source.pause([place])
    put(3...6, age: 60, rig)
    rig.cluster.deleteRecords(of: place, before: 4)
    try rig.source.resume([place])
    try await rig.untilIdle()
    #expect(calls.events == names(1...2) + names(5...6))
    #expect(missing(rig) == "2")
    await rig.drain()
  }

  @Test(arguments: [2, 3, 5])
  func aTopicThatWasMadeAnewWhileNobodyReadIsProcessedFromItsBeginning(records: Int) async throws {
    let calls = Calls()
    let first = try await three(calls)
    first.cluster.loseRecords(of: place, from: 0)
    put(11...(10 + records), age: 30, first)
    let rig = try await ProcessorRig(calls.consumer(), beside: first)
    rig.source.mayGoBack = true
    try await rig.assign(0)
    #expect(calls.events == names(1...3) + names(11...(10 + records)))
    #expect(begunAnew(rig) == "1" && missing(rig) == "0")
    #expect(rig.captured.lines.count { $0.contains("offsets begin again") && $0.contains(#""level":"error""#) } == 1)
    await rig.drain()
    #expect(rig.committed() == Int64(records))
  }

  @Test func whatCameInThePlaceOfALostEndIsProcessed() async throws {
    let calls = Calls()
    let first = try await three(calls)
    first.cluster.loseRecords(of: place, from: 2)
    put(11...14, age: 30, first)
    let rig = try await ProcessorRig(calls.consumer(), beside: first)
    rig.source.mayGoBack = true
    try await rig.assign(0)
    #expect(calls.events == names(1...3) + names(11...14))
    #expect(begunAnew(rig) == "1" && rig.source.seeks == [[place: 2]])
    await rig.drain()
  }

  @Test func offsetsThatBeginAgainWhileAPartitionIsReadAreProcessedAndNotCommittedOver() async throws {
    let (calls, gate) = (Calls(), Signal())
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    put(1...9, age: 90, rig)
    try await rig.untilIdle()
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 9)
    // One is under way, one waits behind it; they are gone from Kafka then, as all others.
    calls.gate = { if $0.id.text == "event-10" { await gate.wait() } }
    rig.put(.of(.sample(10)), age: .seconds(80))
    rig.put(.of(.sample(11)), age: .seconds(80))
    try await until { calls.current == 1 }
    rig.source.mayGoBack = true
    rig.cluster.loseRecords(of: place, from: 0)
    put(21...24, age: 30, rig)
    try await until { calls.events.count == 14 }
    gate.fire()
    try await rig.untilIdle()
    #expect(Set(calls.events) == Set(names(1...10) + names(21...24)) && calls.events.count == 14)
    #expect(begunAnew(rig) == "1" && missing(rig) == "0")
    #expect(rig.metric("siwa_consumer_in_flight") == "0" && rig.metric("siwa_consumer_partitions{") == "1")
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 4)
    // What was under way has its effect, and that is said, though nobody reads its record again.
    #expect(rig.cluster.appended(on: Topic.outcomes.name).count == 14)
    #expect(try await rig.announcementsWaiting().isEmpty)
    await rig.drain()
  }

  @Test func aTopicThatIsMadeAnewInAMomentAndHoldsMoreThanWasReadIsFoundSoon() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    put(1...3, age: 90, rig)
    try await rig.untilIdle()
    rig.cluster.loseRecords(of: place, from: 0)
    put(11...16, age: 30, rig)
    try await rig.untilIdle()
    #expect(calls.events == names(1...3) + names(14...16), "their numbers follow those that were read")
    rig.source.mayGoBack = true
    try await rig.advance(by: .seconds(10))
    #expect(calls.events == names(1...3) + names(14...16) + names(11...13))
    #expect(begunAnew(rig) == "1" && rig.source.seeks == [[place: 0]])
    try await rig.advance(by: .seconds(120))
    #expect(begunAnew(rig) == "1" && missing(rig) == "0")
    await rig.drain()
    #expect(rig.committed() == 6)
  }

  @Test func whoBeginsLateIsToldWhereAndNothingCountsAsMissing() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    put(1...5, age: 90, rig)
    rig.cluster.deleteRecords(of: place, before: 3)
    try await rig.assign(0, 1)
    #expect(calls.events == names(4...5))
    #expect(missing(rig) == "0" && begunAnew(rig) == "0")
    #expect(rig.metric("siwa_consumer_partitions_begun_late_total") == "1")
    #expect(
      rig.captured.lines.contains {
        $0.contains("has committed nothing") && $0.contains(#""kafka.offset":3"#) && $0.contains(#""level":"warning""#)
      })
    await rig.drain()
  }

  @Test func aClusterThatDoesNotSayWhatItHoldsHoldsUpNobody() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    rig.source.silence = KafkaError(.brokerUnavailable, detail: "told to")
    try await rig.assign(0)
    put(1...3, age: 90, rig)
    try await rig.untilIdle()
    #expect(calls.events == names(1...3) && missing(rig) == "0")
    #expect(rig.captured.lines.contains { $0.contains("nobody can say whether records are missing") })
    await rig.drain()
    #expect(rig.committed() == 3)
  }
}
