import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// Whoever writes to the topic has nothing done by that.
@Loop @Suite(.timeLimit(.minutes(30))) struct EventVerificationTests {
  /// What can be forged by somebody who has seen what Apple signed, and has a key of their own.
  enum Forgery: String, CaseIterable, Sendable {
    case unsigned, signedBySomebodyElse, ofAnotherPerson, ofAnotherTime, ofAnotherType, ofAnotherID, ofAnotherTeam
    case ofAnotherApp, cutOff, notForUs
    case requestWithoutCode, requestWithACodeOfAnotherStore, requestOfSomebodyElse, requestForAnotherReason
    case requestWithWhatAppleSigned, findingWithoutCode, findingWithTheCodeOfARequest
  }

  /// One whose work lies outside of the store, and one whose lies inside: each says which events it has done.
  private var consumers: [EventConsumer] {
    let outside = Calls().consumer()
    var inside = EventConsumer.local(
      "sample", outcomes: ["done"], interest: { _ in Interest(severity: 0, yieldsTo: []) },
      decide: { _ in Decision("done") })
    inside.announce = outside.announce
    return [outside, inside]
  }

  /// The e-mail relay as its program has it, unless somebody says otherwise.
  private func relay() async throws -> VerificationRig {
    try await VerificationRig { store in
      var relay = EmailRelay.consumer(store)
      relay.verifies = EmailRelayProgram.alwaysVerifies ?? relay.verifies
      return relay
    }
  }

  private func said(_ rig: VerificationRig) -> [String] {
    rig.process.cluster.appended(on: Topic.outcomes.name).map { String(decoding: $0.value ?? [], as: UTF8.self) }
  }

  private func record(_ forgery: Forgery, of event: AccountEvent, _ rig: VerificationRig) async throws -> KafkaRecord {
    let apple = try VerificationRig.apple.get()
    func changed(
      id: String? = nil, team: String? = nil, audience: String? = nil, subject: String? = nil, later: Duration = .zero,
      _ kind: AccountEvent.Kind? = nil
    ) throws -> AccountEvent {
      AccountEvent(
        id: try #require(EventID(id ?? event.id.text)), team: try #require(TeamID(team ?? event.team.text)),
        audience: try #require(ClientID(audience ?? event.audience.text)),
        subject: try #require(AppleSubject(subject ?? event.subject.text)), kind: kind ?? event.kind,
        occurredAt: event.occurredAt + later, issuedAt: event.issuedAt)
    }
    let request = try changed(.accountDeletionRequested)
    func requested(by person: String, because reason: String) -> KafkaRecord {
      .request(request, by: person, because: reason, rig.process.store)
    }
    switch forgery {
    case .unsigned: return .of(event)
    case .signedBySomebodyElse: return try EventSigner(named: apple.written.id).record(of: event)
    case .ofAnotherPerson: return try apple.record(of: event, holding: changed(subject: "eve"))
    case .ofAnotherTime: return try apple.record(of: event, holding: changed(later: .milliseconds(1)))
    case .ofAnotherType: return try apple.record(of: event, holding: changed(.accountDelete))
    case .ofAnotherID: return try apple.record(of: event, holding: changed(id: "another"))
    case .ofAnotherTeam: return try apple.record(of: changed(team: "Z9Y8X7W6V5"), holding: event)
    case .ofAnotherApp: return try apple.record(of: event, holding: changed(audience: "org.example.other"))
    case .notForUs: return try apple.record(of: changed(audience: "org.example.other"))
    case .cutOff:
      let record = try apple.record(of: event)
      let headers = record.headers.map { header in
        KafkaHeader(header.name, header.name == "apple-jws" ? header.value.map { Array($0.dropLast(4)) } : header.value)
      }
      return KafkaRecord(topic: record.topic, key: record.key, value: record.value, headers: headers)
    case .requestWithoutCode: return .of(request)
    case .requestWithACodeOfAnotherStore:
      let other = try await StoreOfTests().open()
      let record = KafkaRecord.request(request, by: "bob", because: "a letter", other)
      await other.close()
      return record
    case .requestOfSomebodyElse:
      return requested(by: "bob", because: "a letter").with("requested-by", "eve")
    case .requestForAnotherReason:
      return requested(by: "bob", because: "a letter").with("request-reason", "another")
    case .requestWithWhatAppleSigned: return try apple.record(of: request)
    case .findingWithoutCode: return .of(try changed(.credentialInvalid))
    case .findingWithTheCodeOfARequest:
      let asked = KafkaRecord.request(request, rig.process.store)
      let finding = KafkaRecord.request(try changed(.credentialInvalid), rig.process.store)
      return KafkaRecord(topic: finding.topic, key: finding.key, value: finding.value, headers: asked.headers)
    }
  }

  @Test(arguments: Forgery.allCases) func nothingIsDoneAboutWhatIsForged(_ forgery: Forgery) async throws {
    for consumer in consumers {
      let rig = try await VerificationRig(consumer)
      let apple = try VerificationRig.apple.get()
      let event = AccountEvent.sample(1)
      rig.process.put(try await record(forgery, of: event, rig))
      // The account's own next event follows, and one that only shares the forged one's id.
      try await rig.send(try apple.record(of: .sample(2)))
      #expect(said(rig) == ["event-2"], "\(forgery)")
      #expect(rig.letters() == ["event-1 unverified"], "\(forgery)")
      try await rig.send(try apple.record(of: .sample(1, of: "bob")))
      #expect(said(rig) == ["event-2", "event-1"], "the genuine one has its effect")
      await rig.process.drain()
      #expect(rig.process.committed() == 3)
    }
  }

  @Test func aForgedEventThatWouldBeVoidLeavesTheGenuineOneItsEffect() async throws {
    for consumer in consumers {
      let rig = try await VerificationRig(consumer)
      let apple = try VerificationRig.apple.get()
      try await rig.send(try apple.record(of: .sample(5)), .of(.sample(3)))
      #expect(rig.letters() == ["event-3 unverified"])
      try await rig.send(try apple.record(of: .sample(3, of: "bob")))
      #expect(said(rig) == ["event-5", "event-3"])
      #expect(rig.count("superseded-newer-event") == "0")
      await rig.process.drain()
    }
  }

  @Test func whatAppleSignedAndWhatWasAskedForWithTheStoresKeyIsDone() async throws {
    let address = try #require(RelayAddress("a@privaterelay.appleid.com"))
    for consumer in consumers {
      let rig = try await VerificationRig(consumer)
      let apple = try VerificationRig.apple.get()
      let kinds: [AccountEvent.Kind] = [
        .consentRevoked, .accountDelete, .emailEnabled(address, isPrivate: true),
        .emailDisabled(address, isPrivate: false),
      ]
      for (number, kind) in kinds.enumerated() {
        try await rig.send(try apple.record(of: .sample(number, of: "user-\(number)", kind)))
      }
      let store = rig.process.store
      try await rig.send(
        .request(.sample(4, of: "dan", .accountDeletionRequested), by: "bob", because: "a letter", store),
        .request(.sample(5, of: "eve", .accountDeletionRequested), store),
        .request(.sample(6, of: "mia", .credentialInvalid), store))
      #expect(said(rig) == (0..<7).map { "event-\($0)" })
      #expect(rig.letters().isEmpty)
      #expect(rig.topic.reads == 1)
      await rig.process.drain()
    }
  }

  /// Another process has replaced the hashing key since this one asked the store last.
  @Test func whatWasAskedForUnderANewerKeyIsDone() async throws {
    for consumer in consumers {
      let rig = try await VerificationRig(consumer)
      try await rig.process.file.rotateHashKey()
      let other = try await rig.process.file.open()
      try await rig.send(.request(.sample(1, .accountDeletionRequested), by: "bob", because: "a letter", other))
      #expect(said(rig) == ["event-1"])
      #expect(rig.letters().isEmpty)
      await other.close()
      await rig.process.drain()
    }
  }

  /// What Apple has signed stands in the value: whoever copies it may write beside it whatever they like.
  @Test func aLetterIsBelievedOnlyWhereKeyAndHeadersSayWhatWasProven() async throws {
    let rig = try await VerificationRig(
      EventConsumer("sample", outcomes: [], interest: { _ in Interest(severity: 0, yieldsTo: []) }) { _ in
        throw ConsumerFailure.permanent("no-policy")
      })
    let genuine = try VerificationRig.apple.get().record(of: .sample(1))
    let otherKey = KafkaRecord(
      topic: genuine.topic, key: AccountEvent.sample(1, of: "bob").account.key, value: genuine.value,
      headers: genuine.headers)
    try await rig.send(genuine, genuine.with("ce_id", "event-2"), otherKey)
    let letters = rig.process.cluster.appended(on: Topic.deadLetters(of: "sample").name)
    let areBelieved = letters.map { $0.headers.contains(KafkaHeader("dead-letter-believed", "true")) }
    #expect(areBelieved.count == 3 && areBelieved.count { $0 } == 1 && rig.letters().first == "event-1 no-policy")
    #expect(areBelieved.first == true)
    await rig.process.drain()
  }

  /// The fence of who is gone holds for all consumers, and until the next sign-in: that much nobody is believed unproven.
  @Test func whoWritesToTheTopicFencesNobodyThoughTheRelayBelievesWhatIsSaidOfMail() async throws {
    let address = try #require(RelayAddress("a@privaterelay.appleid.com"))
    let rig = try await relay()
    func status() async throws -> String {
      switch try await rig.process.store.relayStates(of: [AccountEvent.sample(0).account])[0] {
      case .known(let state): state.status.rawValue
      case .erased: "erased"
      case .unknown: "unknown"
      }
    }
    try await rig.send(.of(.sample(1, .emailEnabled(address, isPrivate: true))))
    #expect(try await status() == "enabled")
    try await rig.send(.of(.sample(2, .accountDelete)), .of(.sample(3, .accountDeletionRequested)))
    #expect(try await status() == "enabled")
    let letters = rig.process.cluster.appended(on: Topic.deadLetters(of: .emailRelay).name)
    #expect(letters.count == 2)
    try await rig.send(.of(.sample(4, .emailDisabled(address, isPrivate: true))))
    #expect(try await status() == "disabled", "what comes next counts")
    try await rig.send(try VerificationRig.apple.get().record(of: .sample(5, .accountDelete)))
    #expect(try await status() == "erased")
    await rig.process.drain()
  }

  /// From the store to the audit log: both accounts of a transfer are told of, and nobody is named.
  @Test func whatATransferIsAnnouncedWithIsDoneAndLogged() async throws {
    for consumer in consumers {
      let rig = try await VerificationRig(consumer)
      let store = rig.process.store
      let before = AccountEvent.sample(1).account
      let after = Account(
        team: try #require(TeamID("Z9Y8X7W6V5")), subject: try #require(AppleSubject("ada-elsewhere")))
      try await store.transfer(
        before, to: after, try #require(RelayAddress("other@privaterelay.appleid.com")),
        with: AccountEvent.sample(1).audience, at: .sample(1_700_000_100_000))
      let page = try await store.takeOutbox(
        by: "test", at: .sample(1_900_000_000_000), until: .sample(1_900_000_001_000), after: nil, limit: 1000)
      let records = try #require(page).records
      #expect(records.count == 2)
      for record in records { try await rig.send(KafkaRecord(record.record)) }
      #expect(said(rig) == records.map(\.id.text) && rig.letters().isEmpty)
      let translation = RecordTranslation(hash: { store.hash(of: $0) }, issuer: AuditForge.issuer)
      for (record, account) in zip(records, [before, after]) {
        guard
          case .entries(let entries) = translation.entries(
            of: AuditSamples.read(record.record), on: .events, keys: try AuditForge.ring(), at: AuditSamples.issuedAt),
          case .obligation(let obligation)? = entries.first, entries.count == 1
        else { return #expect(Bool(false), "an entry for each") }
        #expect(obligation.id == record.id && obligation.account == store.hash(of: account))
        let text = String(decoding: entries[0].bytes, as: UTF8.self)
        #expect(text.contains("account-transferred"))
        for name in ["\"\(before.subject.text)\"", after.subject.text, "privaterelay", "001876."] {
          #expect(!text.contains(name), "\(text)")
        }
      }
      await rig.process.drain()
    }
  }

  /// The ingress has judged that Apple's clock and its own were near enough, or somebody has.
  @Test func theClockOfTheConsumerDecidesNothing() async throws {
    let calls = Calls()
    let rig = try await VerificationRig(calls.consumer())
    let apple = try VerificationRig.apple.get()
    let event = AccountEvent.sample(1)
    let early = AccountEvent(
      id: event.id, team: event.team, audience: event.audience, subject: event.subject, kind: event.kind,
      occurredAt: ProcessorRig.now + .seconds(7200), issuedAt: ProcessorRig.now + .seconds(7200))
    try await rig.send(try apple.record(of: early))
    #expect(calls.events == ["event-1"])
    await rig.process.drain()
  }

  /// A state of mail of next year would have all until then void: it has to be proven, whatever else is believed.
  @Test func whatIsAheadOfTheBrokersClockIsProvenOrPutAside() async throws {
    let address = try #require(RelayAddress("a@privaterelay.appleid.com"))
    let rig = try await relay()
    func ahead(_ user: String) -> AccountEvent {
      let event = AccountEvent.sample(1, of: user, .emailEnabled(address, isPrivate: true))
      return AccountEvent(
        id: event.id, team: event.team, audience: event.audience, subject: event.subject, kind: event.kind,
        occurredAt: ProcessorRig.now + .seconds(365 * 86_400), issuedAt: ProcessorRig.now)
    }
    try await rig.send(.of(ahead("eve")))
    let letter = try #require(rig.process.cluster.appended(on: Topic.deadLetters(of: .emailRelay).name).last)
    #expect(letter.headers.contains(KafkaHeader("dead-letter-cause", "unverified")))
    #expect(!letter.headers.contains { $0.name == "dead-letter-believed" })
    // As after a release from quarantine.
    try await rig.send(try VerificationRig.apple.get().record(of: ahead("ada")))
    #expect(rig.process.cluster.appended(on: Topic.emailRelay.name).count == 1)
    await rig.process.drain()
  }

  // MARK: Keys

  @Test func anEventOfAKeyThatIsNotThereYetWaitsForIt() async throws {
    let calls = Calls()
    let rig = try await VerificationRig(calls.consumer())
    let (apple, next) = (try VerificationRig.apple.get(), try EventSigner())
    try await rig.send(try apple.record(of: .sample(1)))
    // Apple has replaced its key, and what it signed with the new one is there before the key.
    for number in 2...9 { try await rig.send(try next.record(of: .sample(number, of: "user-\(number)"))) }
    #expect(rig.waiting(for: "signing-key-unknown") == "8")
    try await rig.send(try apple.record(of: .sample(10, of: "bob")))
    #expect(calls.events == ["event-1", "event-10"], "nobody else waits")
    // The topic was just read, and is not again for each of them; the key comes a moment behind what it has signed.
    #expect(rig.topic.reads == 1)
    rig.topic.keys.append(next.written)
    for _ in 1...3 { try await rig.process.advance(by: .seconds(1)) }
    #expect(calls.events.count == 10 && rig.topic.reads == 2)
    #expect(rig.letters().isEmpty)
    // What the old key has signed verifies as before.
    rig.topic.keys = [next.written]
    try await rig.send(try apple.record(of: .sample(11)))
    #expect(calls.events.count == 11)
    await rig.process.drain()
  }

  @Test func whoInventsAKeyHasTheTopicReadMoreAndMoreSeldom() async throws {
    let calls = Calls()
    let rig = try await VerificationRig(calls.consumer())
    try await rig.send(try EventSigner().record(of: .sample(1)))
    for _ in 1...600 { try await rig.process.advance(by: .seconds(1)) }
    // After 1, 2, 4, …, 32 seconds, and then once a minute.
    #expect(14...16 ~= rig.topic.reads, "\(rig.topic.reads)")
    await rig.process.drain()
  }

  @Test func aKeyThatIsMissingForHoursMakesNoDeadLetter() async throws {
    let calls = Calls()
    let rig = try await VerificationRig(calls.consumer())
    let (apple, late) = (try VerificationRig.apple.get(), try EventSigner())
    try await rig.send(
      try late.record(of: .sample(1)), try apple.record(of: .sample(2)), try apple.record(of: .sample(3, of: "bob")))
    for _ in 0..<180 { try await rig.process.advance(by: .seconds(60)) }
    #expect(rig.letters().isEmpty && calls.events == ["event-3"])
    #expect(rig.process.store.counts[.count] == nil, "nothing has failed")
    #expect(100...185 ~= rig.topic.reads, "\(rig.topic.reads)")
    let errors = rig.process.captured.lines.filter { $0.contains("an event waits and waits") }
    #expect(errors.count == 1 && errors[0].contains("signing-key-unknown"), "\(errors)")
    rig.topic.keys.append(late.written)
    try await until {
      try await rig.process.advance(by: .seconds(30))
      return calls.events == ["event-3", "event-1", "event-2"]
    }
    await rig.process.drain()
  }

  @Test(arguments: [true, false]) func whileThereIsNoKeyAtAllEventsWait(isUnreadable: Bool) async throws {
    let calls = Calls()
    let apple = try VerificationRig.apple.get()
    let rig = try await VerificationRig(
      calls.consumer(), keys: [], fault: isUnreadable ? KafkaError(.notAuthorized, detail: "told to") : nil)
    try await rig.send(try apple.record(of: .sample(1)))
    #expect(rig.waiting(for: "signing-keys-missing") == "1")
    for _ in 0..<120 { try await rig.process.advance(by: .seconds(60)) }
    #expect(rig.letters().isEmpty && calls.events.isEmpty, "however long that is")
    #expect(rig.process.store.counts[.count] == nil, "nothing has failed")
    let lines = rig.process.captured.lines
    #expect(lines.count { $0.contains("signing keys cannot be read") } == (isUnreadable ? 1 : 0))
    (rig.topic.fault, rig.topic.keys) = (nil, [apple.written])
    try await until {
      try await rig.process.advance(by: .seconds(5))
      return calls.events == ["event-1"]
    }
    await rig.process.drain()
  }

  // MARK: Restarts and retries

  @Test func whoIsKilledWhileAKeyIsMissingLeavesTheEventToTheNext() async throws {
    let calls = Calls()
    let first = try await VerificationRig(calls.consumer(), keys: [])
    let apple = try VerificationRig.apple.get()
    try await first.send(try apple.record(of: .sample(1)))
    first.process.kill()
    await first.process.stop()
    first.topic.keys = [apple.written]
    let second = try await VerificationRig(calls.consumer(), after: first)
    try await second.process.advance(by: .seconds(1))
    #expect(calls.events == ["event-1"])
    await second.process.drain()
    #expect(second.process.committed() == 1)
  }

  @Test func aRetriedLetterIsVerifiedByWhatItHasKept() async throws {
    let calls = Calls()
    let rig = try await VerificationRig(calls.consumer())
    let late = try EventSigner()
    // The topic is about to forget the one, and the other is forged.
    rig.process.put(try late.record(of: .sample(1)), age: .seconds(8 * 86_400))
    try await rig.send(.of(.sample(2, of: "eve")))
    try await until {
      try await rig.process.advance(by: .seconds(60))
      return rig.letters().count == 2
    }
    rig.topic.keys.append(late.written)
    let topic = Topic.deadLetters(of: "sample")
    rig.process.source.assign([TopicPartition(Topic.retries(of: "sample").name, 0)])
    var letters = Letters(on: .deadLetters(of: "sample"))
    let records = rig.process.cluster.records.filter { $0.key.topic == topic.name }.flatMap(\.value)
    for record in records { letters.read(record) }
    for letter in letters.letters {
      let content = try #require(records.first { $0.position.offset == letter.place.offset })
      rig.process.put(letter.retry(content, to: "sample"))
    }
    try await until {
      try await rig.process.advance(by: .seconds(30))
      return calls.events == ["event-1"] && rig.letters().count == 3
    }
    #expect(rig.letters().last == "event-2 unverified", "it is as forged as before")
    await rig.process.drain()
  }
}

extension KafkaRecord {
  fileprivate func with(_ name: String, _ text: String) -> KafkaRecord {
    KafkaRecord(
      topic: topic, key: key, value: value,
      headers: headers.map { $0.name == name ? KafkaHeader(name, Array(text.utf8)) : $0 })
  }
}
