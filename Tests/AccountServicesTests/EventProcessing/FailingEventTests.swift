import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// What happens to an event that cannot be processed, and to all others.
@Loop @Suite(.timeLimit(.minutes(30))) struct FailingEventTests {
  private let deadLetters = "apple.account-events.sample.dead-letters.v1"

  @Test func anEventThatHasFailedOftenBeforeItCameHereIsAnErrorOnce() async throws {
    let calls = Calls()
    calls.fault = { _ in throw ConsumerFailure.transient("apple-unavailable") }
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    try await first.send(.sample(1))
    for seconds in [1, 2, 4] { try await first.advance(by: .seconds(seconds)) }
    await first.stop()
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    try await second.assign(0)
    for _ in 1...3 { try await second.advance(by: .seconds(60)) }
    #expect(calls.attempts.max() ?? 0 > 5, "beyond the third, which is an error")
    for rig in [first, second] {
      #expect(rig.captured.lines.count { $0.contains("tried again and again") } == 1)
    }
    await second.stop()
  }

  @Test func anAccountsEventsWaitForTheOneThatFailsAndNoOtherAccountDoes() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    calls.fault = { event in if event.subject.text == "ada" { throw ConsumerFailure.transient("apple-unavailable") } }
    try await rig.assign(0)
    try await rig.send(.sample(1), .sample(2), .sample(3, of: "bob"), .sample(4, of: "bob"))
    #expect(calls.events.filter { $0 == "event-1" }.count == 1 && !calls.events.contains("event-2"))
    #expect(calls.events.contains("event-3") && calls.events.contains("event-4"))
    try await rig.advance(by: .seconds(1))
    try await rig.advance(by: .seconds(2))
    #expect(calls.events.filter { $0 == "event-1" }.count == 3)
    #expect(rig.committed() == nil || rig.committed() == 0)
    #expect(rig.metric("siwa_consumer_attempts") == "3")
    #expect(rig.metric("siwa_consumer_oldest_unprocessed_seconds") == "8")
    #expect(rig.metric("siwa_consumer_in_flight") == "2")
    #expect(rig.metric(#"siwa_consumer_retries_total{consumer="sample",cause="apple-unavailable"}"#) == "3")
    #expect(rig.captured.lines.contains { $0.contains("tried again and again") })
    calls.fault = { _ in }
    try await rig.advance(by: .seconds(4))
    #expect(Array(calls.events.suffix(2)) == ["event-1", "event-2"])
    await rig.drain()
    #expect(rig.committed() == 4)
  }

  /// As where a target refuses everybody: each attempt is written down, and not each in a transaction of its own.
  @Test func attemptsThatFailTogetherAreCountedTogether() async throws {
    let calls = Calls()
    calls.fault = { _ in throw ConsumerFailure.transient("busy") }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    let gate = Signal()
    rig.store.gate = { call in
      guard call == .count else { return }
      await gate.wait()
      gate.fire()
    }
    // While the first is being counted, the others fail.
    rig.put(.of(.sample(0, of: "user-0")))
    try await until { rig.store.counts[.count] == 1 }
    for number in 1..<24 { rig.put(.of(.sample(number, of: "user-\(number)"))) }
    try await until { calls.events.count == 24 }
    gate.fire()
    try await rig.untilIdle()
    #expect(rig.metric(#"siwa_consumer_retries_total{consumer="sample",cause="busy"}"#) == "24")
    #expect(rig.store.counts[.count] == 2)
    await rig.stop()
  }

  @Test func pausesGrowAndAnswersThatAskForMoreGetIt() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer())
    calls.fault = { _ in throw ConsumerFailure.transient("busy", retryAfter: .seconds(3)) }
    try await rig.assign(0)
    try await rig.send(.sample(1))
    try await rig.advance(by: .milliseconds(2999))
    #expect(calls.events.count == 1)
    try await rig.advance(by: .milliseconds(1))
    #expect(calls.events.count == 2)
    try await rig.advance(by: .seconds(3))
    #expect(calls.events.count == 3)
    try await rig.advance(by: .milliseconds(3999))
    #expect(calls.events.count == 3)
    try await rig.advance(by: .milliseconds(1))
    #expect(calls.events.count == 4)
    await rig.drain()
  }

  @Test func pausesDoubleUpToTheLongest() {
    let pace = RetryPace(first: .seconds(1), longest: .seconds(60))
    #expect(
      [1, 2, 3, 6, 7, 8, 5000].map { pace.pause(after: $0, random: 1) }
        == [1, 2, 4, 32, 60, 60, 60].map { .seconds($0) })
    #expect(pace.pause(after: 3, random: 0.25) == .seconds(1))
  }

  @Test func whoComesNextGoesOnCounting() async throws {
    let calls = Calls()
    calls.fault = { _ in throw ConsumerFailure.transient("busy") }
    let first = try await ProcessorRig(calls.consumer())
    try await first.assign(0)
    try await first.send(.sample(1))
    try await first.advance(by: .seconds(1))
    await first.drain()
    #expect(calls.attempts == [1, 2])
    let second = try await ProcessorRig(calls.consumer(), beside: first)
    try await second.assign(0)
    #expect(calls.attempts == [1, 2, 3])
    // The third pause lasts four seconds.
    try await second.advance(by: .milliseconds(3999))
    #expect(calls.attempts.count == 3)
    await second.drain()
  }

  @Test func whoeverWaitsForSomethingIsNotCounted() async throws {
    let calls = Calls()
    calls.fault = { _ in throw ConsumerFailure.waiting("tokens-not-ended", for: .seconds(5)) }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    try await rig.send(.sample(1))
    try await rig.advance(by: .seconds(5))
    #expect(calls.attempts == [1, 1])
    #expect(rig.store.counts[.count] == nil)
    await rig.drain()
  }

  @Test func anEventThatIsVoidByNowIsNotTriedAgain() async throws {
    let calls = Calls()
    calls.fault = { _ in throw ConsumerFailure.transient("busy") }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    try await rig.send(.sample(1))
    let newer = Settlement(
      of: .of(
        .sample(2), rig.store, at: EventOrigin(topic: "t", partition: 0, offset: 0), severity: 0, yieldsTo: []),
      by: "sample", outcome: "done", changes: [])
    _ = try await rig.store.settle([newer], at: ProcessorRig.now)
    try await rig.advance(by: .seconds(1))
    #expect(calls.events == ["event-1"])
    await rig.drain()
    #expect(rig.committed() == 1)
  }

  @Test func anEventThatIsNotVoidAnyMoreIsProcessed() async throws {
    let calls = Calls()
    let rig = try await ProcessorRig(calls.consumer(yieldsTo: [.erasure]))
    let (gone, event) = (AccountEvent.sample(1), AccountEvent.sample(3))
    let erasure = Settlement(
      of: .of(gone, rig.store, at: EventOrigin(topic: "t", partition: 0, offset: 0), severity: 0, yieldsTo: []),
      by: "other", outcome: "done", changes: [.eraseAccount(isFinal: true)])
    _ = try await rig.store.settle([erasure], at: ProcessorRig.now)
    try await rig.assign(0)
    let away = AccountStoreError(.unavailable, "told to")
    rig.store.before = { call throws(AccountStoreError) in if call == .settle { throw away } }
    try await rig.send(event)
    #expect(calls.events.isEmpty)
    _ = try await rig.store.recordSignIn(event.account, at: AccountEvent.sample(2).occurredAt, tokens: [])
    rig.store.before = { _ in }
    try await rig.advance(by: .seconds(5))
    await rig.drain()
    #expect(calls.events == ["event-3"] && rig.committed() == 1)
    #expect(rig.cluster.appended(on: Topic.outcomes.name).count == 1)
  }

  @Test func whatNeverSucceedsIsADeadLetterAndOnlyThenCommitted() async throws {
    let calls = Calls()
    calls.fault = { event in if event.id.text == "event-1" { throw ConsumerFailure.permanent("not-ours") } }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    rig.log.isHolding = true
    try await rig.send(.sample(1), .sample(2))
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == nil && rig.cluster.appended(on: deadLetters).isEmpty)
    // The account's next one follows the letter.
    #expect(calls.events == ["event-1"])
    rig.log.release()
    try await rig.untilIdle()
    await rig.drain()
    #expect(rig.committed() == 2 && calls.events == ["event-1", "event-2"])
    let letter = try #require(rig.cluster.appended(on: deadLetters).first)
    let origin = KafkaRecord.of(.sample(1))
    #expect(letter.key == Array("apple.account-events.v1/0/0/event-1".utf8) && letter.value == origin.value)
    #expect(Array(letter.headers.prefix(origin.headers.count)) == origin.headers)
    #expect(
      letter.headers.dropFirst(origin.headers.count).map {
        "\($0.name) \(String(decoding: $0.value ?? [], as: UTF8.self))"
      }
        == [
          "dead-letter-cause not-ours", "dead-letter-attempts 1", "dead-letter-topic apple.account-events.v1",
          "dead-letter-partition 0", "dead-letter-offset 0", "dead-letter-consumer sample",
          "dead-letter-time 2027-01-15T08:00:00.000Z", "dead-letter-believed true", "dead-letter-key A1B2C3D4E5/ada",
        ])
    #expect(rig.metric(#"siwa_consumer_dead_letters_total{consumer="sample",cause="other"}"#) == "1")
  }

  @Test(arguments: [false, true])
  func whatItsTopicIsAboutToForgetIsGivenUpAfterALongTrial(_ isWaiting: Bool) async throws {
    let calls = Calls()
    calls.fault = { event in
      guard event.subject.text == "ada" else { return }
      if isWaiting { throw ConsumerFailure.waiting("tokens-not-ended", for: .seconds(60)) }
      throw ConsumerFailure.transient("tokens-not-ended")
    }
    let rig = try await ProcessorRig(calls.consumer())
    try await rig.assign(0)
    rig.put(.of(.sample(1)), age: .seconds(8 * 86_400))
    rig.put(.of(.sample(2)), age: .seconds(8 * 86_400))
    try await rig.send(.sample(3), .sample(4, of: "bob"))
    #expect(rig.metric(#"siwa_consumer_retrying{consumer="sample",cause="tokens-not-ended"}"#) == "1")
    for _ in 0..<59 { try await rig.advance(by: .seconds(60)) }
    let givenUp = #"siwa_consumer_dead_letters_total{consumer="sample",cause="given-up"}"#
    #expect(rig.cluster.appended(on: deadLetters).isEmpty && rig.metric(givenUp) == "0")
    for _ in 0..<2 { try await rig.advance(by: .seconds(60)) }
    // The next one of the account has no trial of its own; the young one is tried on.
    let letters = rig.cluster.appended(on: deadLetters)
    #expect(letters.map(\.value) == [1, 2].map { KafkaRecord.of(.sample($0)).value })
    #expect(
      letters[0].headers.contains(KafkaHeader("dead-letter-given-up", "true"))
        && letters[0].headers.contains(KafkaHeader("dead-letter-cause", "tokens-not-ended")))
    #expect(rig.metric(givenUp) == "2", "whatever the cause was: the series was there before")
    #expect(calls.events.last == "event-3")
    #expect(rig.metric(#"siwa_consumer_retrying{consumer="sample",cause="tokens-not-ended"}"#) == "1")
    let alarm = isWaiting ? "an event waits and waits" : "tried again and again"
    #expect(rig.captured.lines.contains { $0.contains(alarm) })
    calls.fault = { _ in }
    try await rig.advance(by: .seconds(60))
    await rig.drain()
    #expect(rig.committed() == 4)
    #expect(rig.metric(#"siwa_consumer_retrying{consumer="sample",cause="tokens-not-ended"}"#) == "0")
  }

  @Test(arguments: [
    (Array(#"{"id":"x","type":"email-moved"}"#.utf8), "malformed-member"), (nil, "malformed-json"),
    (
      Array(
        #"{"id":"x","type":"email-moved","team":"A1B2C3D4E5","audience":"a.b","sub":"s","event_time":1,"issued_at":1}"#
          .utf8), "unknown-type"
    ),
  ])
  func whatNobodyCanReadIsADeadLetter(_ value: [UInt8]?, _ cause: String) async throws {
    let rig = try await ProcessorRig(Calls().consumer())
    try await rig.assign(0)
    rig.put(KafkaRecord(topic: Topic.accountEvents.name, key: nil, value: value))
    try await rig.send(.sample(2))
    await rig.drain()
    let letter = try #require(rig.cluster.appended(on: deadLetters).first)
    // The topic is compacted: a letter without a value would not be kept.
    #expect(letter.value == value ?? [])
    #expect(letter.headers.contains { $0.name == "dead-letter-no-value" } == (value == nil))
    #expect(!letter.headers.contains { $0.name == "dead-letter-key" })
    #expect(letter.headers.first { $0.name == "dead-letter-cause" }?.value == Array(cause.utf8))
    #expect(rig.committed() == 2)
  }

  @Test func ofALetterThatTheLogNeverTakesItIsKeptWhereTheRecordStands() async throws {
    let calls = Calls()
    calls.fault = { event in if event.subject.text == "ada" { throw ConsumerFailure.permanent("not-ours") } }
    let rig = try await ProcessorRig(calls.consumer())
    rig.log.fault = { record in
      record.value?.isEmpty ?? true || !record.topic.contains("dead-letters")
        ? nil : EventLogError(.refused, reason: "recordTooLarge", detail: "told to")
    }
    try await rig.assign(0)
    try await rig.send(.sample(1), .sample(2, of: "bob"))
    for _ in 0..<2 { try await rig.advance(by: .seconds(1)) }
    await rig.drain()
    #expect(rig.committed() == 2)
    let letter = try #require(rig.cluster.appended(on: deadLetters).first)
    #expect(rig.cluster.appended(on: deadLetters).count == 1)
    #expect(letter.key == Array("apple.account-events.v1/0/0/event-1".utf8) && letter.value == [])
    #expect(letter.headers.contains(KafkaHeader("dead-letter-truncated", "true")))
    #expect(letter.headers.contains(KafkaHeader("ce_id", "event-1")))
    #expect(letter.headers.contains(KafkaHeader("dead-letter-cause", "not-ours")))
    #expect(!letter.headers.contains { $0.name == "content-type" })
  }

  /// A broker refuses a batch as a whole, whosever letters are in it.
  @Test func aLetterThatIsTooLargeInABatchIsWholeAlone() async throws {
    let calls = Calls()
    calls.fault = { _ in throw ConsumerFailure.permanent("not-ours") }
    let rig = try await ProcessorRig(calls.consumer())
    rig.log.fault = { record in
      record.topic.contains("dead-letters")
        ? EventLogError(.refused, reason: "recordTooLarge", detail: "told to") : nil
    }
    rig.log.faultAlone = { _ in nil }
    try await rig.assign(0)
    try await rig.send(.sample(1), .sample(2, of: "bob"))
    await rig.drain()
    #expect(rig.committed() == 2)
    let letters = rig.cluster.appended(on: deadLetters)
    #expect(letters.count == 2 && letters.allSatisfy { $0.value?.isEmpty == false })
    #expect(letters.allSatisfy { letter in !letter.headers.contains { $0.name == "dead-letter-truncated" } })
  }

  @Test func anUndeclaredOutcomeIsNeitherLostNorWritten() async throws {
    let rig = try await ProcessorRig(
      EventConsumer.local(
        "sample", outcomes: ["done"], interest: { _ in Interest(severity: 0, yieldsTo: []) },
        decide: { _ in Decision("dnoe") }))
    try await rig.assign(0)
    try await rig.send(.sample(1))
    #expect(rig.store.counts[.settle] == nil)
    #expect(rig.metric(#"siwa_consumer_retries_total{consumer="sample",cause="undeclared-outcome"}"#) == "1")
    await rig.drain()
  }
}
