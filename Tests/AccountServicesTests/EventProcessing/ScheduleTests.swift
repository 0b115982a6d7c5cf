import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import Kafka
import TestSupport
import Testing

/// Two processes, their partitions, their store and their log, in any order of events.
@Loop @Suite(.timeLimit(.minutes(30))) struct ScheduleTests {
  @Test func whateverHappensEachEventHasOneEffectAndNoneIsMissing() async throws {
    for _ in SeededRandom.rounds(6) {
      let seed = SeededRandom().seed
      let schedule = try await Schedule(SeededRandom(seed: seed))
      for step in 0..<120 {
        try await schedule.step()
        if step % 8 == 7 { try await schedule.check("SEED=\(seed)") }
      }
      try await schedule.finish()
      try await schedule.check("SEED=\(seed)", isFinished: true)
    }
  }
}

/// A run of random steps, and what has to hold after each.
@Loop
private final class Schedule {
  private static let partitions: [TopicPartition] = [.events(0), .events(1), .events(2)]
  private static let accounts = ["ada", "bob", "cleo", "dan", "eve", "fay"]

  private let calls = Calls()
  private var random: SeededRandom
  private var members: [ProcessorRig]
  private var owners: [TopicPartition: Int] = [:]
  private var sent: [(event: AccountEvent, partition: Int32, offset: Int64)] = []
  private var failing: Set<String> = []
  private var isLogAway = false

  init(_ random: SeededRandom) async throws {
    self.random = random
    members = []
    members.append(try await makeMember())
    members.append(try await makeMember())
    // The members outlive the schedule where a check fails.
    calls.fault = { [weak self] event in
      guard let self else { return }
      if failing.contains(event.id.text) { throw ConsumerFailure.transient("busy") }
      if event.id.text.hasSuffix("7") { throw ConsumerFailure.permanent("not-ours") }
    }
  }

  private var cluster: MemoryCluster { members[0].cluster }

  /// A process whose consumer says each event on a topic that keeps them all, and the newest one that has had its effect on
  /// a compacted one.
  private func makeMember(beside other: ProcessorRig? = nil) async throws -> ProcessorRig {
    try await ProcessorRig(beside: other ?? members.first) { [unowned self] surroundings in
      var consumer = calls.consumer()
      consumer.announce = { event, _, _ in
        [Topic.emailRelay, .outcomes].map { topic in
          Announcement(topic: topic, key: event.account.key, value: Array(event.id.text.utf8), headers: [])
        }
      }
      consumer.compacted = EventConsumer.Compacted(.emailRelay) {
        [weak self] announcements throws(AccountStoreError) in
        guard let self else { return announcements }
        let standings = try await surroundings.store.standings(of: references, for: "sample")
        let settled = zip(sent, standings).filter { if case .settled = $1 { true } else { false } }.map(\.0.event)
        return announcements.map { announcement in
          let newest = settled.last { $0.account.key == announcement.key }
          return Announcement(
            topic: .emailRelay, key: announcement.key, value: newest.map { Array($0.id.text.utf8) }, headers: [])
        }
      }
      return consumer
    }
  }

  /// What the store knows the events by that were sent.
  private var references: [EventReference] {
    sent.map { sent in
      EventReference.of(
        sent.event, members[0].store,
        at: EventOrigin(topic: Topic.accountEvents.name, partition: sent.partition, offset: sent.offset), severity: 0,
        yieldsTo: [])
    }
  }

  func step() async throws {
    let member = members[Int.random(in: 0...1, using: &random)]
    let partition = Self.partitions[Int.random(in: 0...2, using: &random)]
    let kind = Int.random(in: 0..<14, using: &random)
    switch kind {
    case 0..<5: send(Int.random(in: 1...8, using: &random))
    case 5: try await move(partition, isLost: false)
    case 6: try await move(partition, isLost: true)
    case 7:
      failing = Set(sent.suffix(40).map(\.event.id.text).filter { _ in Int.random(in: 0..<4, using: &random) == 0 })
    case 8: failing = []
    case 9:
      let call = [WatchedStore.Call.standings, .settle, .claim, .count].randomElement(using: &random)
      let isBefore = Bool.random(using: &random)
      let error = AccountStoreError(isBefore ? .unavailable : .uncertain, "told to")
      if isBefore {
        member.store.before = { made throws(AccountStoreError) in if made == call { throw error } }
      } else {
        member.store.after = { made throws(AccountStoreError) in if made == call { throw error } }
      }
    case 10:
      member.store.before = { _ in }
      member.store.after = { _ in }
    case 11:
      isLogAway.toggle()
      let error = EventLogError(.unavailable, reason: "sample", detail: "told to")
      for member in members { member.log.fault = { [weak self] _ in self?.isLogAway ?? true ? error : nil } }
    case 12: try await replace(Int.random(in: 0...1, using: &random))
    default:
      let pause = Duration.milliseconds(Int.random(in: 10...3000, using: &random))
      for member in members { try await member.advance(by: pause) }
    }
    for member in members { try await member.untilIdle() }
  }

  private func send(_ count: Int) {
    for _ in 0..<count {
      let account = Int.random(in: 0..<Self.accounts.count, using: &random)
      let event = AccountEvent.sample(sent.count, of: Self.accounts[account])
      let partition = Int32(account % 3)
      let offset = cluster.append(.of(event), to: partition, timestamp: event.issuedAt.milliseconds)
      sent.append((event, partition, offset))
    }
    for member in members { member.source.wake() }
  }

  /// Gives a partition to the other member, in good order or not.
  private func move(_ partition: TopicPartition, isLost: Bool) async throws {
    if let owner = owners[partition] {
      let source = members[owner].source
      if isLost {
        source.lose([partition])
      } else {
        source.revoke([partition])
        while source.partitions.contains(partition) { try await members[owner].advance(by: .seconds(1)) }
      }
    }
    let next = owners[partition].map { 1 - $0 } ?? Int.random(in: 0...1, using: &random)
    owners[partition] = next
    members[next].source.assign([partition])
  }

  /// Kills a process, and starts another one in its place.
  private func replace(_ number: Int) async throws {
    let gone = members[number]
    let (own, _) = (owners.filter { $0.value == number }.map(\.key), gone.kill())
    await gone.stop()
    members[number] = try await makeMember(beside: gone)
    let error = EventLogError(.unavailable, reason: "sample", detail: "told to")
    members[number].log.fault = { [weak self] _ in self?.isLogAway ?? true ? error : nil }
    if !own.isEmpty { members[number].source.assign(Set(own)) }
  }

  /// Ends all faults, and lets time pass until all is done.
  func finish() async throws {
    failing = []
    isLogAway = false
    for member in members {
      member.store.before = { _ in }
      member.store.after = { _ in }
    }
    for partition in Self.partitions where owners[partition] == nil { try await move(partition, isLost: false) }
    try await until {
      for member in self.members { try await member.advance(by: .seconds(60)) }
      return self.members.allSatisfy { $0.metric("siwa_consumer_in_flight") == "0" }
    }
    for member in members { try await member.advance(by: .seconds(1)) }
    for member in members { await member.processor.end(within: .zero) }
  }

  /// What is committed is done; each account's events are done in their order.
  func check(_ comment: Comment, isFinished: Bool = false) async throws {
    let letters = Set(cluster.appended(on: "apple.account-events.sample.dead-letters.v1").map(\.value))
    let said = cluster.appended(on: Topic.outcomes.name)
    let saidOnce = Set(said.map(\.value))
    let standings = try await members[0].peek(references)
    for (number, (event, partition, offset)) in sent.enumerated() {
      let isPutAside = letters.contains(KafkaRecord.of(event).value)
      let isSettled = if case .settled = standings[number] { true } else { false }
      guard isFinished || offset < cluster.committed[.events(partition)] ?? 0 else { continue }
      #expect(isPutAside || isSettled, "\(event.id) of \(event.subject.text) is missing: \(comment)")
      let value = Array(event.id.text.utf8)
      #expect(isPutAside || saidOnce.contains(value), "\(event.id) was not said: \(comment)")
    }
    for name in Self.accounts {
      let values = said.filter { $0.key == AccountEvent.sample(0, of: name).account.key }.compactMap(\.value)
      var (first, seen): ([Int], Set<[UInt8]>) = ([], [])
      for value in values where seen.insert(value).inserted {
        first.append(Int(String(decoding: value, as: UTF8.self).dropFirst(6)) ?? -1)
      }
      #expect(first == first.sorted(), "\(name): \(comment)")
      // A member that does not know yet that it has lost a partition may say an event once more, behind newer ones: the
      // compacted topic has the newest one last all the same.
      let last = cluster.appended(on: Topic.emailRelay.name).last {
        $0.key == AccountEvent.sample(0, of: name).account.key
      }
      if isFinished { #expect(last?.value == Array("event-\(first.last ?? 0)".utf8), "\(name): \(comment)") }
    }
    if isFinished {
      for partition in Self.partitions {
        #expect(cluster.committed[partition] ?? 0 == Int64(cluster.records[partition]?.count ?? 0), comment)
      }
    }
  }
}
