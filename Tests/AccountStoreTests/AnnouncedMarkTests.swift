import AccountEvents
import AccountStore
import EventLoop
import Testing

/// How far everything is announced: who has claimed a partition last says it.
@Loop @Suite struct AnnouncedMarkTests {
  private let now = Sample.time(1000)
  private let partitions = [
    SourcePartition(topic: "apple.account-events.v1", partition: 4),
    SourcePartition(topic: "apple.account-events.v1", partition: 11),
    SourcePartition(topic: "apple.account-events.email-relay.retry.v1", partition: 4),
  ]

  private func claims(_ places: Int...) -> [PartitionClaim] { places.map { PartitionClaim(partitions[$0]) } }

  private func mark(
    _ place: Int, _ claim: Int64, _ offset: Int64, beyond: String = "", by consumer: ConsumerName = Sample.relay
  ) -> AnnouncedMark {
    AnnouncedMark(consumer: consumer, partition: partitions[place], claim: claim, offset: offset, beyond: beyond)
  }

  @Test(arguments: Implementation.all)
  func aMarkIsKeptForWhoeverClaimsThePartitionNext(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      #expect(try await store.claim([], for: Sample.relay) == [])
      #expect(
        try await store.claim(claims(2, 0, 1), for: Sample.relay) == [mark(2, 1, 0), mark(0, 1, 0), mark(1, 1, 0)])
      let event = Sample.event("a", at: 1)
      #expect(
        try await store.settle([event.settled()], announced: [mark(1, 1, 8, beyond: "11,13"), mark(0, 1, 5)], at: now)
          == Settled(outcomes: [.applied]))
      #expect(
        try await store.claim(claims(0, 1, 2), for: Sample.relay)
          == [mark(0, 2, 5), mark(1, 2, 8, beyond: "11,13"), mark(2, 2, 0)])
      #expect(
        try await store.claim(claims(1), for: Sample.revoker) == [mark(1, 1, 0, by: Sample.revoker)], "another consumer"
      )
    }
  }

  @Test(arguments: Implementation.all)
  func aMarkOnlyRises(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.claim(claims(0), for: Sample.relay)
      for raised in [mark(0, 1, 7, beyond: "9"), mark(0, 1, 7, beyond: "9,11"), mark(0, 1, 6, beyond: "8")] {
        #expect(try await store.settle([], announced: [raised], at: now) == Settled(), "it is the last claim's")
      }
      #expect(try await store.claim(claims(0), for: Sample.relay) == [mark(0, 2, 7, beyond: "9,11")])
      #expect(try await store.settle([], announced: [mark(0, 2, 8)], at: now) == Settled())
      #expect(try await store.claim(claims(0), for: Sample.relay) == [mark(0, 3, 8)])
    }
  }

  @Test(arguments: Implementation.all)
  func aMarkOfAnOlderClaimIsNotRaisedAndIsReported(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let (one, other) = (try await prepared.open(), try await prepared.open())
    _ = try await one.claim(claims(0, 1), for: Sample.relay)
    #expect(try await other.claim(claims(1), for: Sample.relay) == [mark(1, 2, 0)])
    let event = Sample.event("a", at: 1)
    let (stale, held) = (mark(1, 1, 9), mark(0, 1, 9))
    #expect(
      try await one.settle([event.settled()], announced: [stale, held], at: now)
        == Settled(outcomes: [.applied], fenced: [stale]), "what was settled is settled all the same")
    #expect(try await one.settle([], announced: [stale], at: now) == Settled(fenced: [stale]))
    // Whoever never claimed it neither.
    let unclaimed = mark(2, 1, 9)
    #expect(try await one.settle([], announced: [unclaimed], at: now) == Settled(fenced: [unclaimed]))
    #expect(try await other.settle([], announced: [mark(1, 2, 3)], at: now) == Settled())
    #expect(
      try await one.claim(claims(0, 1, 2), for: Sample.relay) == [mark(0, 2, 9), mark(1, 3, 3), mark(2, 1, 0)])
    for store in [one, other] { await store.close() }
  }

  @Test(arguments: Implementation.all)
  func aPartitionThatBeginsAnewIsAnnouncedFromThereOn(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      _ = try await store.claim(claims(0), for: Sample.relay)
      _ = try await store.settle([], announced: [mark(0, 1, 700, beyond: "702")], at: now)
      #expect(
        try await store.claim([PartitionClaim(partitions[0], beginsAnewAt: 20)], for: Sample.relay) == [mark(0, 2, 20)])
      #expect(try await store.settle([], announced: [mark(0, 2, 21)], at: now) == Settled())
      #expect(
        try await store.claim(
          [PartitionClaim(partitions[0]), PartitionClaim(partitions[1], beginsAnewAt: 3)], for: Sample.relay)
          == [mark(0, 3, 21), mark(1, 1, 3)])
    }
  }

  /// The mark and what was settled with it are one: neither is there without the other.
  @Test(arguments: Implementation.all)
  func whatCannotBeSettledRaisesNoMark(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    _ = try await store.claim(claims(0), for: Sample.relay)
    try await store.fill(1...1)
    try await prepared.breakKeys()
    let broken = Sample.event("broken", at: 5).settled(.setRelay(Sample.enabled(5)))
    let error = await #expect(throws: AccountStoreError.self) {
      try await store.settle([broken], announced: [mark(0, 1, 9)], at: now)
    }
    #expect(error?.code == .sealBroken)
    #expect(try await store.claim(claims(0), for: Sample.relay) == [mark(0, 2, 0)])
    await store.close()
  }

  @Test(arguments: Implementation.all)
  func ofTwoWhoClaimAtOnceOneIsTheLast(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let stores = [try await prepared.open(), try await prepared.open()]
    for round in 0..<20 {
      let orders = [claims(0, 1, 2), claims(2, 1, 0)]
      let calls = stores.indices.map { index in
        Task { try await stores[index].claim(orders[index], for: Sample.relay) }
      }
      var numbers: [SourcePartition: [Int64]] = [:]
      var marks: [AnnouncedMark] = []
      for call in calls { marks += try await call.value }
      for mark in marks { numbers[mark.partition, default: []].append(mark.claim) }
      for partition in partitions {
        #expect(Set(numbers[partition] ?? []) == [Int64(round * 2 + 1), Int64(round * 2 + 2)])
      }
      let raises = stores.indices.map { index in
        let own = marks[index * 3..<index * 3 + 3]
        return Task { [now] in try await stores[index].settle([], announced: Array(own), at: now).fenced }
      }
      var fenced: [AnnouncedMark] = []
      for raise in raises { fenced += try await raise.value }
      #expect(fenced.count == 3 && fenced.allSatisfy { $0.claim == Int64(round * 2 + 1) })
    }
    for store in stores { await store.close() }
  }
}
