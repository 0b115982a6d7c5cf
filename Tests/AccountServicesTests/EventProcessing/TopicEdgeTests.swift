import AccountEvents
import AccountServices
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// What a topic no longer has, and what begins anew: nothing is passed over unseen.
@Loop @Suite(.timeLimit(.minutes(30))) struct TopicEdgeTests {
  private let place = TopicPartition.events(0)
  private func missing(_ rig: ProcessorRig) -> String? { rig.metric("siwa_consumer_records_missing_total") }
  private func begunAnew(_ rig: ProcessorRig) -> String? { rig.metric("siwa_consumer_partitions_begun_anew_total") }

  /// Puts the events of people of those numbers onto the topic, so many seconds ago.
  private func put(_ numbers: ClosedRange<Int>, age: Int, _ rig: ProcessorRig) {
    for number in numbers { rig.put(.of(.sample(number, of: "user-\(number)")), age: .seconds(age)) }
  }

  private let deadLetters = "apple.account-events.sample.dead-letters.v1"

  /// Has the events of these numbers fail, and no others.
  private func fail(_ numbers: Int..., of calls: Calls) {
    let names = numbers.map { "event-\($0)" }
    calls.fault = { event in
      if names.contains(event.id.text) { throw ConsumerFailure.transient("told-to", detail: "told to") }
    }
  }

  private func names(_ numbers: ClosedRange<Int>) -> [String] { numbers.map { "event-\($0)" } }

  /// A process that has processed the first three events, and committed that.
  private func three(_ calls: Calls) async throws -> ProcessorRig {
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    put(1...3, age: 90, rig)
    try await rig.untilIdle()
    await rig.drain()
    let note = "1 1799999910000 1799999910000 store=\(rig.store.identity)"
    #expect(rig.cluster.commitments[place] == CommittedOffset(3, note: note))
    return rig
  }

  private func isNotReady(_ rig: ProcessorRig) -> Bool {
    if case .notReady = rig.processor.storeState() { true } else { false }
  }

  /// A process with another account store, whose partition has two more events, while nobody can say what its group has
  /// committed; and what that is.
  private func ofAnotherStoreAndUnknown(_ calls: Calls) async throws -> (ProcessorRig, CommittedOffset?) {
    let first = try await three(calls)
    put(4...5, age: 60, first)
    let wrong = try await ProcessorRig(calls.consumer(), beside: first, with: StoreOfTests())
    wrong.source.silence = KafkaError(.closed, detail: "nobody answers")
    try await wrong.assign(0)
    return (wrong, first.cluster.commitments[place])
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

  @Test func nothingIsProcessedWithAnotherAccountStoreUntilTheGroupBeginsAnew() async throws {
    let calls = Calls()
    let first = try await three(calls)
    let (committed, empty) = (first.cluster.commitments[place], StoreOfTests())
    put(4...5, age: 60, first)
    let wrong = try await ProcessorRig(calls.consumer(), beside: first, with: empty)
    try await wrong.assign(0, 1)
    // Nor of a partition in which nothing was committed.
    try await wrong.send(.sample(9, of: "user-9"), partition: 1)
    for _ in 1...3 { try await wrong.advance(by: .seconds(60)) }
    #expect(calls.events == names(1...3))
    guard case .notReady(let cause) = wrong.processor.storeState() else {
      Issue.record("it is ready")
      return
    }
    let (own, other) = (wrong.store.identity, first.store.identity)
    #expect(cause.contains("worked on \(place) with the account store \(other), and this one is \(own)"))
    let line = try #require(wrong.captured.lines.first { $0.contains("another account store") })
    #expect(line.contains(#""level":"error""#) && line.contains(other.description))
    #expect(wrong.metric("siwa_consumer_partitions{") == "0")
    #expect(wrong.metric("siwa_consumer_lag") == "2")
    await wrong.drain()
    #expect(first.cluster.commitments == [place: try #require(committed)])

    let right = try await ProcessorRig(calls.consumer(), beside: first)
    try await right.assign(0)
    #expect(calls.events == names(1...5))
    #expect(right.processor.storeState() == .ready)
    await right.drain()

    // As `siwa topics reset-group` sets it.
    first.cluster.commitments[place] = CommittedOffset(0)
    let new = try await ProcessorRig(calls.consumer(), beside: first, with: empty)
    try await new.assign(0)
    #expect(calls.events == names(1...5) + names(1...5))
    await new.drain()
    #expect(first.cluster.commitments[place]?.note.hasSuffix("store=\(own)") == true)
  }

  @Test func aPartitionIsGivenUpOnceItIsKnownThatItsGroupWorkedWithAnotherAccountStore() async throws {
    let calls = Calls()
    let (wrong, committed) = try await ofAnotherStoreAndUnknown(calls)
    #expect(wrong.processor.storeState() == .ready)
    wrong.source.silence = nil
    try await wrong.advance(by: .seconds(10))
    #expect(isNotReady(wrong))
    put(6...6, age: 50, wrong)
    for _ in 1...3 { try await wrong.advance(by: .seconds(60)) }
    #expect(calls.events == names(1...5))
    await wrong.drain()
    #expect(wrong.cluster.commitments[place] == committed)
  }

  @Test func whatAnotherAccountStoreHasCommittedIsKeptWhereOffsetsBeginAgainBeforeItIsKnown() async throws {
    let calls = Calls()
    let (wrong, committed) = try await ofAnotherStoreAndUnknown(calls)
    wrong.source.bringAgain(place, from: 1)
    try await wrong.untilIdle()
    #expect(begunAnew(wrong) == "1")
    try await wrong.advance(by: .seconds(10))
    #expect(wrong.cluster.commitments[place] == committed)
    wrong.source.silence = nil
    for _ in 1...3 { try await wrong.advance(by: .seconds(60)) }
    #expect(isNotReady(wrong))
    await wrong.drain()
    #expect(wrong.cluster.commitments[place] == committed)
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
    #expect(begunAnew(rig) == "1" && rig.source.seeks == [[place: 0]])
    await rig.drain()
    #expect(rig.committed() == 6)
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
    let lettersBefore = rig.cluster.appended(on: deadLetters).count
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
    #expect(begunAnew(rig) == "1" && missing(rig) == "0" && rig.source.seeks == [[place: 0]])
    // What waited is nowhere else any more.
    let letters = rig.cluster.appended(on: deadLetters).dropFirst(lettersBefore)
    #expect(letters.map(\.value) == [KafkaRecord.of(.sample(11)).value])
    #expect(rig.captured.lines.contains { $0.contains("topic-begun-anew") && $0.contains(#""events":1"#) })
    #expect(rig.metric("siwa_consumer_in_flight") == "0" && rig.metric("siwa_consumer_partitions{") == "1")
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 4)
    // What was under way has its effect, and that is said, though nobody reads its record again.
    #expect(rig.cluster.appended(on: Topic.outcomes.name).count == 14)
    await rig.drain()
  }

  @Test func whatIsNotDoneBeforeALostEndIsProcessedByTheNextProcess() async throws {
    let calls = Calls()
    let first = try await ProcessorRig(calls.consumer())
    fail(2, 4, of: calls)
    try await first.assign(0)
    put(1...9, age: 90, first)
    try await first.untilIdle()
    // All nine are compared, and then three are committed.
    try await first.advance(by: .seconds(10))
    fail(4, of: calls)
    try await first.advance(by: .seconds(60))
    try await first.advance(by: .seconds(1))
    await first.drain()
    #expect(
      first.cluster.commitments[place]
        == CommittedOffset(3, note: "9 1799999910000 1799999910000 store=\(first.store.identity)"))
    first.cluster.loseRecords(of: place, from: 6)
    put(11...14, age: 30, first)
    let later = Calls()
    let rig = try await ProcessorRig(later.consumer(), beside: first)
    rig.source.mayGoBack = true
    try await rig.assign(0)
    #expect(Set(later.events) == Set(names(4...4) + names(11...14)) && later.events.count == 5)
    #expect(rig.cluster.appended(on: Topic.outcomes.name).count == 13, "each is announced once")
    #expect(begunAnew(rig) == "1" && missing(rig) == "0")
    await rig.drain()
    #expect(rig.committed() == 10)
  }

  @Test func whatIsNotDoneBeforeALostEndIsProcessedWhereItIsFoundOutWhileThePartitionIsRead() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    fail(4, of: calls)
    try await rig.assign(0)
    put(1...9, age: 90, rig)
    try await rig.untilIdle()
    try await rig.advance(by: .seconds(10))
    rig.source.mayGoBack = true
    rig.cluster.loseRecords(of: place, from: 6)
    put(11...15, age: 30, rig)
    try await rig.untilIdle()
    #expect(!calls.events.contains("event-11"), "reading goes on at its number")
    try await rig.advance(by: .seconds(10))
    try await rig.advance(by: .seconds(1))
    #expect(begunAnew(rig) == "1" && missing(rig) == "0" && rig.source.seeks == [[place: 0]])
    #expect(calls.events.contains("event-11"))
    #expect(rig.committed() == 3, "the fourth is not done")
    fail(of: calls)
    try await rig.advance(by: .seconds(60))
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 11)
    #expect(rig.cluster.appended(on: Topic.outcomes.name).count == 14)
    #expect(begunAnew(rig) == "1")
    await rig.drain()
  }

  @Test func aStepBackToOtherRecordsDoesNotCommitOverWhatIsNotDone() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    fail(2, of: calls)
    try await rig.assign(0)
    put(1...6, age: 90, rig)
    try await rig.untilIdle()
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 1)
    rig.source.mayGoBack = true
    rig.cluster.loseRecords(of: place, from: 4)
    rig.source.bringAgain(place, from: 4)
    put(11...13, age: 30, rig)
    try await rig.untilIdle()
    try await rig.advance(by: .seconds(1))
    #expect(begunAnew(rig) == "1" && rig.source.seeks == [[place: 0]])
    #expect(rig.committed() == 1, "the second is not done")
    fail(of: calls)
    try await rig.advance(by: .seconds(60))
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 7 && missing(rig) == "0" && begunAnew(rig) == "1")
    #expect(rig.cluster.appended(on: Topic.outcomes.name).count == 9)
    await rig.drain()
  }

  @Test func recordsThatAreBroughtTwiceAreNoBeginningAndNothingIsCommittedOver() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    fail(3, of: calls)
    try await rig.assign(0)
    put(1...5, age: 90, rig)
    try await rig.untilIdle()
    for offset in [4, 3, 2, 0] as [Int64] {
      rig.source.bringAgain(place, from: offset)
      try await rig.untilIdle()
    }
    try await rig.advance(by: .seconds(1))
    #expect(begunAnew(rig) == "0" && missing(rig) == "0" && rig.source.seeks.isEmpty)
    #expect(rig.committed() == 2, "the third is not done")
    put(6...6, age: 30, rig)
    fail(of: calls)
    try await rig.advance(by: .seconds(60))
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 6 && begunAnew(rig) == "0")
    #expect(Set(calls.events) == Set(names(1...6)))
    #expect(calls.events.count { $0 != "event-3" } == 5)
    #expect(rig.cluster.appended(on: deadLetters).isEmpty)
    await rig.drain()
  }

  @Test func whereReadingCannotGoBackNothingIsTakenUntilItCan() async throws {
    let calls = Calls()
    let first = try await three(calls)
    first.cluster.loseRecords(of: place, from: 0)
    put(11...16, age: 30, first)
    let rig = try await ProcessorRig(calls.consumer(), beside: first)
    rig.source.mayGoBack = true
    rig.source.seekFault = KafkaError(.timedOut, detail: "told to")
    try await rig.assign(0)
    try await rig.advance(by: .seconds(10))
    #expect(calls.events == names(1...3), "what is read ahead does not count")
    rig.source.seekFault = nil
    try await rig.advance(by: .seconds(10))
    #expect(calls.events == names(1...3) + names(11...16))
    #expect(begunAnew(rig) == "1" && missing(rig) == "0" && rig.source.seeks == [[place: 0]])
    await rig.drain()
    #expect(rig.committed() == 6)
  }

  @Test func whereReadingLeavesThePlaceThatItWentBackToItGoesThereAgain() async throws {
    let calls = Calls()
    let first = try await three(calls)
    first.cluster.loseRecords(of: place, from: 0)
    put(11...16, age: 30, first)
    let rig = try await ProcessorRig(calls.consumer(), beside: first)
    rig.source.mayGoBack = true
    rig.source.placeAfterSeek = 3
    try await rig.assign(0)
    #expect(calls.events == names(1...3) + names(11...16))
    #expect(begunAnew(rig) == "1" && missing(rig) == "0" && rig.source.seeks == [[place: 0], [place: 0]])
    await rig.drain()
    #expect(rig.committed() == 6)
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
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == nil, "a hole would be committed over")
    rig.source.silence = nil
    try await rig.advance(by: .seconds(10))
    await rig.drain()
    #expect(rig.committed() == 3)
  }

  @Test func aHoleIsFoundOnceTheClusterSaysWhatTheGroupHasCommitted() async throws {
    let calls = Calls()
    let first = try await three(calls)
    put(4...8, age: 60, first)
    first.cluster.deleteRecords(of: place, before: 6)
    let rig = try await ProcessorRig(calls.consumer(), beside: first)
    rig.source.silence = KafkaError(.brokerUnavailable, detail: "told to")
    try await rig.assign(0)
    try await rig.advance(by: .seconds(1))
    #expect(calls.events == names(1...3) + names(7...8))
    #expect(rig.committed() == 3 && missing(rig) == "0")
    rig.source.silence = nil
    try await rig.advance(by: .seconds(10))
    #expect(missing(rig) == "3" && begunAnew(rig) == "0")
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 8)
    await rig.drain()
  }
}
