import AccountEvents
import AccountServices
import EventLoop
import TestSupport
import Testing

/// How many records the drain has on their way: what is under way when a process is killed may come twice. Whose these are is
/// decided in `AccountLanesTests`.
@Loop @Suite(.timeLimit(.minutes(30))) struct DrainWindowTests {
  @Test func aDrainBeginsWithFewAndEachRecordThatIsThroughMakesRoomForOneMore() async throws {
    try await whileDraining(300) { rig in
      try await expectUnderWay(64, rig)
      for released in 1...3 {
        rig.log.releaseFirst()
        try await expectUnderWay(64 + released, rig)
      }
      for _ in 0..<67 { rig.log.releaseFirst() }
      try await expectUnderWay(134, rig)
    }
  }

  @Test func itNeverHasMoreUnderWayThan1024() async throws {
    try await whileDraining(2200) { rig in
      for width in [64, 128, 256, 512, 1024] {
        try await expectUnderWay(width, rig)
        if width < 1024 { for _ in 0..<width { rig.log.releaseFirst() } }
      }
      rig.log.releaseFirst()
      try await until { rig.spool.depth == 2200 - 64 - 128 - 256 - 512 - 1 }
      try await expectUnderWay(1024, rig)
    }
  }

  @Test(arguments: EventLogError.Outcome.allCases)
  func whatTheLogDoesNotTakeHasItBeginAnew(_ outcome: EventLogError.Outcome) async throws {
    try await whileDraining(1000) { rig in
      for width in [64, 128] {
        try await expectUnderWay(width, rig)
        for _ in 0..<width { rig.log.releaseFirst() }
      }
      try await expectUnderWay(256, rig)
      rig.log.fault = { _ in .sample(outcome) }
      // Nothing takes the place of those that fail until fewer than 64 are left.
      for failed in 1...192 {
        rig.log.releaseFirst()
        if failed % 64 == 0 { try await expectUnderWay(256 - failed, rig) }
      }
      for _ in 0..<10 { rig.log.releaseFirst() }
      try await expectUnderWay(64, rig)
      rig.log.fault = { _ in nil }
      for _ in 0..<10 { rig.log.releaseFirst() }
      try await expectUnderWay(74, rig)
    }
  }

  @Test func whatTheLogKeepsForTooLongHoldsUpNobodyElse() async throws {
    try await whileDraining(200, patience: .milliseconds(50)) { rig in
      try await until { rig.log.waiting.count >= 64 }
      // As for the accounts of a partition that is down.
      let kept = rig.log.waiting.map(\.key)
      rig.log.hold { kept.contains($0.key) }
      try await until { rig.published.count == 200 - kept.count }
      #expect(rig.log.waiting.map(\.key) == kept)
    }
  }

  /// Waits until so many records are with the log, and sees that they stay so many.
  private func expectUnderWay(
    _ count: Int, _ rig: PublisherRig, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await until({ rig.log.waiting.count >= count }, sourceLocation: sourceLocation)
    await turn()
    // The spool works in order: an extra read would have arrived by now.
    _ = try await rig.spool.read(after: 0, limit: 1)
    await turn()
    #expect(rig.log.waiting.count == count, sourceLocation: sourceLocation)
  }

  /// Runs `body` with what the last run left in the spool: a record each of so many people, in a log that holds them.
  private func whileDraining(
    _ count: Int, patience: Duration = .seconds(600), _ body: @escaping @Loop (PublisherRig) async throws -> Void
  ) async throws {
    try await PublisherRig.run(patience: patience, drains: false) { rig in
      try await rig.spoolRecords(count)
      // Who fails is not tried again before this run is over.
      let never = RetryPace(first: .seconds(86_400), longest: .seconds(86_400))
      try await rig.again(holding: true, pace: never) { rig in
        try await body(rig)
        rig.log.fault = { _ in nil }
        rig.log.release()
        try await rig.again { last in
          try await last.untilDrained()
          #expect(rig.published.count + last.published.count == count)
        }
      }
    }
  }
}

extension PublisherRig {
  /// Has the spool take a record each of so many people.
  fileprivate func spoolRecords(_ count: Int) async throws {
    log.fault = { _ in .sample(.unavailable) }
    try await withThrowingTaskGroup { group in
      for person in 0..<count {
        group.addTask(executorPreference: Loop.executor) { _ = try await self.publish("p\(person)", 1) }
      }
      try await group.waitForAll()
    }
    #expect(spool.depth == count)
  }
}
