import AccountEvents
import AccountServices
import AccountStore
import AppleID
import AppleSimulator
import ConsumerSupport
import EventLoop
import HTTPClient
import Kafka
import TestSupport
import Testing

/// Letters on a real broker.
@Loop @Suite(RealBroker.isThere, .timeLimit(.minutes(30))) struct LetterBoxTests {
  private nonisolated static let patience = Duration.seconds(300)
  private nonisolated static let retried = LetterDecision(
    .retried, because: nil, by: "grace", at: ProcessorRig.now)

  private struct Cluster {
    let configuration: KafkaConfiguration
    let admin: Admin
    let producer: Producer

    @Loop func box(_ topic: LetterTopic) -> LetterBox {
      LetterBox(configuration, topic, within: patience, log: { _ in })
    }

    /// What stands in the first partition of a topic, which has as many records.
    @Loop func records(on topic: Topic, count: Int) async throws -> [ConsumedRecord] {
      let reader = try Consumer(configuration, group: nil, log: { _ in })
      try reader.assign([PartitionStart(topic: topic.name, partition: 0, at: .beginning)])
      var records: [ConsumedRecord] = []
      while records.count < count { records += try await reader.next(upTo: 100) }
      await reader.close()
      return records
    }
  }

  /// A broker with topics of one partition.
  private func run(_ body: @Loop (Cluster) async throws -> Void) async throws {
    let broker = try await RealBroker()
    let configuration = try KafkaConfiguration(properties: [("bootstrap.servers", broker.bootstrapServers)])
    let admin = try Admin(configuration, log: { _ in })
    let producer = try Producer(configuration, deadline: Self.patience, log: { _ in })
    let plans = TopicPlan.all(partitions: 1, replication: 1, consumers: ["sample"])
    _ = try await admin.createTopics(plans.map(\.newTopic), within: Self.patience)
    for plan in plans { _ = try await admin.awaitTopic(plan.topic.name, within: Self.patience) }
    let result: Result<Void, any Error>
    do {
      result = .success(
        try await body(Cluster(configuration: configuration, admin: admin, producer: producer)))
    } catch { result = .failure(error) }
    await producer.close(within: .zero)
    await admin.close()
    try result.get()
  }

  /// The letter of an event that the log takes, or only where it is short.
  private func letter(of event: AccountEvent, isShort: Bool) async throws -> KafkaRecord {
    let calls = Calls()
    calls.fault = { _ in throw ConsumerFailure.permanent("not-ours") }
    let rig = try await ProcessorRig(calls.consumer())
    if isShort {
      rig.log.fault = { record in
        record.value?.isEmpty ?? true ? nil : EventLogError(.refused, reason: "recordTooLarge", detail: "told to")
      }
    }
    try await rig.assign(0)
    try await rig.send(event)
    try await rig.advance(by: .seconds(1))
    await rig.drain()
    return try #require(rig.cluster.appended.last { $0.topic.contains("dead-letters") })
  }

  @Test func aRecordThatIsTooLargeForALetterIsReadAndRetriedFromWhereItStands() async throws {
    try await run { cluster in
      let event = AccountEvent.sample(1)
      _ = try await cluster.producer.send(.of(event))
      _ = try await cluster.producer.send(.of(.sample(2)))
      _ = try await cluster.producer.send(try await letter(of: event, isShort: true))

      let box = cluster.box(.deadLetters(of: "sample"))
      let letters = try await box.read()
      #expect(letters.letters.map(\.isShortened) == [true] && letters.letters.first?["ce_id"] == "event-1")
      var values: [[UInt8]?] = []
      try await box.contents(of: letters.letters) { _, content throws(KafkaError) in values.append(content?.value) }
      #expect(values == [KafkaRecord.of(event).value])
      var outcomes: [LetterOutcome] = []
      try await box.retry(letters.letters, of: letters, to: "sample", Self.retried) { outcomes.append($1) }
      #expect(outcomes == [.done])
      #expect(try await box.read().letters.isEmpty)
      let retried = try await cluster.records(on: .retries(of: "sample"), count: 1)[0]
      #expect(retried.key == event.account.key && retried.value == KafkaRecord.of(event).value)

      // Once its topic has forgotten it, that is said, nothing is noted, and the next one is retried all the same.
      _ = try await cluster.producer.send(try await letter(of: event, isShort: true))
      _ = try await cluster.producer.send(try await letter(of: .sample(3, of: "bob"), isShort: false))
      _ = try await cluster.admin.deleteRecords(before: [.events(0): 1], within: Self.patience)
      let left = try await box.read()
      outcomes = []
      try await box.retry(left.letters, of: left, to: "sample", Self.retried) { outcomes.append($1) }
      let place = try #require(left.letters.first?.place)
      #expect(
        outcomes == [
          .left(
            "\(place) only says where its record stood, and that is not there any more: apple.account-events.v1/0/0"),
          .done,
        ])
      #expect(try await box.read().letters.map(\.place) == [place])
      let next = try await cluster.records(on: .retries(of: "sample"), count: 2)[1]
      #expect(next.value == KafkaRecord.of(.sample(3, of: "bob")).value)
    }
  }

  /// As where the topic was made anew, or is not there any more: no letter waits for what never comes.
  @Test func aRecordBehindTheEndOfItsTopicIsGoneAndSoIsOneOfNoTopic() async throws {
    try await run { cluster in
      var letters = [try await letter(of: .sample(1), isShort: true), try await letter(of: .sample(2), isShort: true)]
      letters[1].headers = letters[1].headers.map { header in
        header.name == "dead-letter-topic" ? KafkaHeader(header.name, "not-there") : header
      }
      for letter in letters { _ = try await cluster.producer.send(letter) }
      _ = try await cluster.producer.send(try await letter(of: .sample(3, of: "bob"), isShort: false))
      let box = cluster.box(.deadLetters(of: "sample"))
      let all = try await box.read()
      var outcomes: [LetterOutcome] = []
      try await box.retry(all.letters, of: all, to: "sample", Self.retried) { outcomes.append($1) }
      #expect(outcomes.count == 3 && outcomes.last == .done)
      for (outcome, place) in zip(outcomes, ["apple.account-events.v1/0/0", "not-there/0/0"]) {
        #expect("\(outcome)".contains("that is not there any more: \(place)"))
      }
    }
  }

  @Test func whatTheRetryTopicNeverTakesIsLeftAndTheOthersAreRetried() async throws {
    try await run { cluster in
      let narrow = Topic.retries(of: "narrow")
      _ = try await cluster.admin.createTopics(
        [NewTopic(narrow.name, partitions: 1, replicationFactor: 1, settings: ["max.message.bytes": "2000"])],
        within: Self.patience)
      _ = try await cluster.admin.awaitTopic(narrow.name, within: Self.patience)
      var large = try await letter(of: .sample(1), isShort: false)
      large.headers.append(KafkaHeader("padding", String(repeating: "x", count: 4000)))
      let others = [
        try await letter(of: .sample(2), isShort: false), try await letter(of: .sample(3, of: "bob"), isShort: false),
      ]
      for letter in [large] + others { _ = try await cluster.producer.send(letter) }
      let box = cluster.box(.deadLetters(of: "sample"))
      let all = try await box.read()
      var outcomes: [LetterOutcome] = []
      try await box.retry(all.letters, of: all, to: "narrow", Self.retried) { outcomes.append($1) }
      let places = all.letters.map(\.place)
      #expect("\(outcomes[0])".contains("\(places[0]) stays: Kafka refuses it: recordTooLarge: "))
      #expect(
        outcomes[1...] == [
          .left("\(places[1]) stays: \(places[0]) is of the same account and comes first"), .done,
        ])
      #expect(try await box.read().letters.map(\.place) == Array(places[..<2]))
      let retried = try await cluster.records(on: narrow, count: 1)
      #expect(retried.map(\.value) == [KafkaRecord.of(.sample(3, of: "bob")).value])
    }
  }

  @Test func whatIsReleasedIsNotHeldBackForTheBatchThatItIsIn() async throws {
    try await run { cluster in
      let narrow = "narrow"
      _ = try await cluster.admin.createTopics(
        [NewTopic(narrow, partitions: 1, replicationFactor: 1, settings: ["max.message.bytes": "2000"])],
        within: Self.patience)
      _ = try await cluster.admin.awaitTopic(narrow, within: Self.patience)
      let sizes = [Int](repeating: 500, count: 20) + [4000]
      let records = sizes.map { KafkaRecord(topic: narrow, key: [1], value: [UInt8](repeating: 1, count: $0)) }
      let results = await cluster.producer.send(aloneIfTooLarge: records)
      let refusals = results.compactMap { if case .failure(let error) = $0 { error.code } else { nil } }
      #expect(refusals == [.recordTooLarge])
    }
  }

  /// As where a policy was missing for some hours. Read one by one, they took half a second each.
  @Test func aThousandLettersAreRetriedAtOnceAndInTheOrderOfTheirRecords() async throws {
    try await run { cluster in
      let (count, one) = (1500, try await letter(of: .sample(1), isShort: false))
      // The last record was put aside first.
      let letters = (0..<count).reversed().map { number in
        var letter = one
        (letter.key, letter.value) = (Array("letter \(number)".utf8), Array("\(number)".utf8))
        letter.headers = letter.headers.map { header in
          header.name == "dead-letter-offset" ? KafkaHeader(header.name, "\(number)") : header
        }
        return letter
      }
      for result in await cluster.producer.send(letters) { _ = try result.get() }
      let box = cluster.box(.deadLetters(of: "sample"))
      let all = try await box.read()
      let chosen = all.select(Set(all.letters.map(\.place))).letters
      var done = 0
      try await box.retry(chosen, of: all, to: "sample", Self.retried) { if $1 == .done { done += 1 } }
      #expect(done == count)
      #expect(try await box.read().letters.isEmpty)
      let retried = try await cluster.records(on: .retries(of: "sample"), count: count)
      #expect(retried.map(\.value) == (0..<count).map { Array("\($0)".utf8) as [UInt8]? })
    }
  }

  @Test func aTopicOfWhichNothingIsLeftHasNoLetters() async throws {
    try await run { cluster in
      // As somebody may have made it, and emptied it: compacted topics are not emptied so.
      let topic = Topic.deadLetters(of: "other").name
      _ = try await cluster.admin.createTopics(
        [NewTopic(topic, partitions: 1, replicationFactor: 1, settings: ["cleanup.policy": "delete"])],
        within: Self.patience)
      _ = try await cluster.admin.awaitTopic(topic, within: Self.patience)
      _ = try await cluster.producer.send(KafkaRecord(topic: topic, key: [1], value: []))
      _ = try await cluster.admin.deleteRecords(before: [TopicPartition(topic, 0): 1], within: Self.patience)
      #expect(try await cluster.box(.deadLetters(of: "other")).read().letters.isEmpty)
    }
  }

  @Test func whatWasPutAsideForItsTimeIsPublishedAndItsNoteNamesNobody() async throws {
    var sent: [EventRecord] = []
    try await IngressRig.run { rig in
      for fault in [Fault.expired, .unknownType, .expired] {
        let answer = try await rig.post(rig.sign(.accountDelete, fault).body)
        #expect(answer.status == 200)
      }
      sent = rig.log.signingKeys.map(\.record) + rig.log.records
    }
    try await run { cluster in
      for record in sent { _ = try await cluster.producer.send(.standing(record)) }
      let box = cluster.box(.quarantine)
      let letters = try await box.read()
      #expect(letters.letters.map(\.cause) == ["expired", "unknown-type", "expired"])
      let release = QuarantineRelease(Self.verifier, keys: try await box.signingKeys())
      let decision = LetterDecision(
        .released, because: "the clock was wrong", by: "grace", at: ProcessorRig.now)

      // Without a decision it is only said.
      var outcomes: [LetterOutcome] = []
      func note(_ letter: Letter, _ outcome: LetterOutcome) { outcomes.append(outcome) }
      try await box.release(letters.letters, of: letters, by: release, at: IngressRig.now, nil, each: note)
      #expect(outcomes.count == 3 && outcomes.count { $0 == .done } == 2)
      #expect(try await box.read().letters.count == 3)

      outcomes = []
      try await box.release(letters.letters, of: letters, by: release, at: IngressRig.now, decision, each: note)
      #expect(
        Set(outcomes.map { "\($0)" }) == ["done", #"left("0/1 stays: this version does not know its type either")"#])
      let left = try await box.read()
      #expect(left.letters.map(\.cause) == ["unknown-type"])
      let notes = try await cluster.records(on: .quarantine, count: 5).suffix(2)
      let kept = sent.filter { $0.topic == .quarantine }
      #expect(notes.map(\.key) == [kept[0].key, kept[2].key])
      for note in notes {
        #expect(
          note.headers.map(\.name) == ["handled", "handled-letter", "handled-reason", "handled-by", "handled-time"])
        #expect(note.value == Array("released".utf8))
      }

      // Whoever was killed between an event's acknowledgement and its note publishes the same once more.
      try await box.release(letters.letters, of: letters, by: release, at: IngressRig.now, decision) { _, _ in }
      let published = try await cluster.records(on: .accountEvents, count: 4)
      let known = published.map { [$0.key, $0.value] }
      #expect(known[..<2] == known[2...] && published[0].headers == published[2].headers)
      #expect(try await box.read().letters.map(\.cause) == ["unknown-type"])

      // What nothing follows from.
      let discarded = LetterDecision(.discarded, because: "a rehearsal", by: "grace", at: ProcessorRig.now)
      outcomes = []
      try await box.discard(left.letters, of: left, discarded, each: note)
      #expect(outcomes == [.done])
      #expect(try await box.read().letters.isEmpty)
    }
  }

  private static var verifier: NotificationVerifier {
    NotificationVerifier(
      issuer: AppleNotification.appleIssuer, teams: IngressRig.teams, clockTolerance: .seconds(60))
  }
}

extension KafkaRecord {
  /// A record as the ingress has written it.
  fileprivate static func standing(_ record: EventRecord) -> KafkaRecord {
    KafkaRecord(
      topic: record.topic.name, key: record.key, value: record.value,
      headers: record.headers.map { KafkaHeader($0.name, $0.value) })
  }
}
