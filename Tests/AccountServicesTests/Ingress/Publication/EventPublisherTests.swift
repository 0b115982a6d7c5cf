import AccountEvents
import AccountServices
import ConsumerSupport
import EventLoop
import Glibc
import SQLite
import TestSupport
import Testing

/// What was accepted is on the log or in the spool, and in the order of its account.
@Loop @Suite(.timeLimit(.minutes(30))) struct EventPublisherTests {
  @Test func whatTheLogTakesNeverSeesTheSpool() async throws {
    try await PublisherRig.run { rig in
      let acceptance = try await rig.publish("ada", 1)
      #expect(acceptance == .published(EventLogPosition(partition: 0, offset: 0)))
      #expect(rig.spool.lastSequence == 0)
    }
  }

  @Test(arguments: EventLogError.Outcome.allCases)
  func whatTheLogFailsToTakeIsInTheSpoolUntilItDoes(_ outcome: EventLogError.Outcome) async throws {
    try await PublisherRig.run { rig in
      rig.log.fault = { _ in .sample(outcome) }
      #expect(try await rig.publish("ada", 1) == .spooled)
      #expect(try await rig.publish("ada", 2) == .spooled)
      #expect(try await rig.publish("bob", 1) == .spooled)
      #expect(rig.spool.depth == 3 && rig.published.isEmpty)
      rig.log.fault = { _ in nil }
      try await rig.untilDrained()
      #expect(rig.published.filter { $0.hasPrefix("ada") } == ["ada-1", "ada-2"])
      #expect(rig.published.sorted() == ["ada-1", "ada-2", "bob-1"])
      #expect(try await rig.publish("ada", 3) == .published(EventLogPosition(partition: 0, offset: 3)))
    }
  }

  @Test func whatIsLateIsInTheSpoolAndLeavesItWithoutASecondRecord() async throws {
    try await PublisherRig.run(patience: .zero) { rig in
      rig.log.hold()
      #expect(try await rig.publish("ada", 1) == .spooled)
      #expect(rig.log.waiting.count == 1)
      rig.log.release()
      try await rig.untilDrained()
      #expect(rig.published == ["ada-1"])
    }
  }

  @Test func whatIsLateAndThenFailsIsPublishedAgainBeforeWhatFollows() async throws {
    try await PublisherRig.run(patience: .zero) { rig in
      rig.log.takesWhatItReportsAsUncertain = true
      rig.log.fault = { _ in .sample(.uncertain) }
      rig.log.hold()
      #expect(try await rig.publish("ada", 1) == .spooled)
      #expect(try await rig.publish("ada", 2) == .spooled)
      #expect(rig.log.waiting.count == 1, "the second one goes nowhere before the first is settled")
      rig.log.releaseFirst()
      rig.log.fault = { _ in nil }
      rig.log.release()
      try await rig.untilDrained()
      #expect(rig.published == ["ada-1", "ada-1", "ada-2"])
    }
  }

  @Test func whatTheLogTakesLateIsAnsweredThoughTheDiskHangs() async throws {
    try await PublisherRig.run(patience: .zero) { rig in
      let other = try Database(rig.spoolFile, .readWrite(pageSize: 4096), busyTimeout: .zero)
      try other.execute("BEGIN IMMEDIATE")
      rig.log.hold()
      let answer = rig.publishing("ada", 1)
      await rig.log.untilHeld()
      await turn()  // its time is over, and the spool waits for the other one's lock
      rig.log.release()
      #expect(try await answer.value == .published(EventLogPosition(partition: 0, offset: 0)))
      try other.execute("ROLLBACK")
      // The spool has it too by now, or has given up; either way nothing of it comes again.
      try await rig.publish("ada", 2)
      try await until { rig.published.count == 2 && rig.spool.depth == 0 }
      #expect(rig.published == ["ada-1", "ada-2"])
    }
  }

  @Test func oneRecordOfAnAccountIsOnItsWayAtATime() async throws {
    try await PublisherRig.run { rig in
      rig.log.hold()
      let first = rig.publishing("ada", 1)
      await rig.log.untilHeld()
      let (second, other) = (rig.publishing("ada", 2), rig.publishing("bob", 1))
      try await until { rig.log.waiting.count == 2 }
      #expect(rig.log.waiting.map { String(decoding: $0.value, as: UTF8.self) } == ["ada-1", "bob-1"])
      rig.log.release()
      _ = try await (first.value, second.value, other.value)
      #expect(rig.published.filter { $0 != "bob-1" } == ["ada-1", "ada-2"] && rig.published.count == 3)
    }
  }

  @Test func whatWasAcceptedIsNotPublishedAgain() async throws {
    try await PublisherRig.run { rig in
      rig.log.hold()
      let (first, again) = (rig.publishing("ada", 1), rig.publishing("ada", 1))
      await rig.log.untilHeld()
      rig.log.release()
      let acceptances = try await [first.value, again.value]
      #expect(acceptances.count { $0 == .repeated } == 1)
      #expect(try await rig.publish("ada", 1) == .repeated)
      #expect(rig.published == ["ada-1"])
      try await rig.again { rig in
        let acceptance = try await rig.publish("ada", 1)
        #expect(acceptance == .repeated && rig.published.isEmpty)
      }
    }
  }

  @Test func whatWasNotAcceptedMayComeAgain() async throws {
    try await PublisherRig.run(limit: 1) { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      await #expect(throws: EventLogError.self) { try await rig.publish("ada", 1) }
      rig.log.fault = { _ in nil }
      let acceptance = try await rig.publish("ada", 1)
      #expect(acceptance == .published(EventLogPosition(partition: 0, offset: 0)))
    }
  }

  @Test func whoeverWaitsForNeitherIsToldInTimeAndMayComeAgain() async throws {
    try await PublisherRig.run(patience: .zero, deadline: .zero, limit: 1) { rig in
      rig.log.hold()
      for _ in 0..<3 {
        let error = await #expect(throws: EventLogError.self) { try await rig.publish("ada", 1) }
        #expect(error?.outcome == .uncertain)
      }
      rig.log.release()
      let acceptance = try await rig.publish("ada", 2)
      #expect(acceptance == .published(EventLogPosition(partition: 0, offset: 3)))
      #expect(rig.published == ["ada-1", "ada-1", "ada-1", "ada-2"], "the log had it, whatever Apple was told")
    }
  }

  @Test func whatWasToldToBeLostAndIsOnTheLogIsNotAcceptedBehindALaterOne() async throws {
    try await PublisherRig.run(patience: .zero, deadline: .zero, limit: 1) { rig in
      rig.log.hold()
      await #expect(throws: EventLogError.self) { try await rig.publish("ada", 1) }
      rig.log.release()
      let next = try await rig.publish("ada", 2)
      #expect(next == .published(EventLogPosition(partition: 0, offset: 1)))
      let again = try await rig.publish("ada", 1)
      #expect(again == .repeated)
      #expect(rig.published == ["ada-1", "ada-2"])
    }
  }

  @Test func whatTheLogRefusesSaysNothingOfTheLog() async throws {
    try await PublisherRig.run(drains: false) { rig in
      rig.log.fault = { $0.key == Array("ada".utf8) ? .sample(.refused) : nil }
      let refused = try await rig.publish("ada", 1)
      #expect(refused == .spooled)
      #expect(rig.metric("siwa_ingress_log_suspect") == "0")
      let others = try await rig.publish("bob", 1)
      #expect(others == .published(EventLogPosition(partition: 0, offset: 0)))
    }
  }

  /// The next record of an account follows once the one before it is gone from the spool: the log may end in between.
  @Test func whatFollowsInTheSpoolStaysThereOnceTheLogIsBeingClosed() async throws {
    try await PublisherRig.run(drains: false) { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      for number in 1...2 { #expect(try await rig.publish("ada", number) == .spooled) }
      rig.log.fault = { _ in nil }
      rig.log.hold()
      let drain = Task(executorPreference: Loop.executor) { await rig.publisher.drain() }
      await rig.log.untilHeld()
      await turn()  // the second one follows the first by now
      rig.log.releaseFirst()
      await rig.publisher.close(by: .now)
      await drain.value
      #expect(rig.published == ["ada-1"])
      let report = try SpoolReport(lookingInto: rig.spoolDirectory, listing: 10)
      #expect(report.first.map(\.sequence) == [2])
    }
  }

  @Test func whatComesWhileTheLogIsBeingClosedGoesToTheSpool() async throws {
    try await PublisherRig.run(drains: false) { rig in
      rig.log.hold()
      let first = rig.publishing("ada", 1)
      await rig.log.untilHeld()
      let second = rig.publishing("ada", 2)
      await turn()
      let end = Task(executorPreference: Loop.executor) { await rig.publisher.close(by: .now) }
      let acceptances = try await [first.value, second.value]
      #expect(acceptances == [.spooled, .spooled])
      await end.value
      #expect(rig.published.isEmpty, "the log was told to end before it had the first")
    }
  }

  @Test func theNextRunBringsWhatTheLastOneLeftBeforeWhatFollows() async throws {
    try await PublisherRig.run(drains: false) { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      for number in 1...3 { #expect(try await rig.publish("ada", number) == .spooled) }
      try await rig.again(holding: true) { rig in
        #expect(try await rig.publish("ada", 4) == .spooled)
        rig.log.release()
        try await rig.untilDrained()
        #expect(rig.published == ["ada-1", "ada-2", "ada-3", "ada-4"])
      }
    }
  }

  /// The log is told to end while many wait for one account, and the spool is full.
  @Test func anEndWithManyWaitingForOneAccountAndAFullSpoolIsInGoodOrder() async throws {
    try await PublisherRig.run(limit: 1, drains: false) { rig in
      rig.log.hold()
      let all = (0..<2000).map { rig.publishing("ada", $0) }
      await rig.log.untilHeld()
      await turn()
      await rig.publisher.close(by: .now)
      for one in all { await #expect(throws: EventLogError.self) { try await one.value } }
      #expect(rig.published.isEmpty)
    }
  }

  @Test func theStackDoesNotGrowWithThoseWhoWait() async throws {
    try await PublisherRig.run(limit: 1, drains: false) { rig in
      rig.log.hold()
      let all = (0..<300).map { rig.publishing("ada", $0) }
      await rig.log.untilHeld()
      await turn()
      var places: [UInt] = []
      rig.log.fault = { _ in
        var local = 0
        unsafe places.append(withUnsafeMutablePointer(to: &local) { UInt(bitPattern: $0) })
        return .sample(.unavailable)
      }
      rig.log.release()
      for one in all { await #expect(throws: EventLogError.self) { try await one.value } }
      let (low, high) = (try #require(places.min()), try #require(places.max()))
      #expect(places.count == 300 && high - low < 16_384, "\(high - low) bytes")
    }
  }

  @Test func bothEndsComeWhereItIsEndedTwice() async throws {
    try await PublisherRig.run(patience: .zero, drains: false) { rig in
      let other = try Database(rig.spoolFile, .readWrite(pageSize: 4096), busyTimeout: .zero)
      try other.execute("BEGIN IMMEDIATE")
      rig.log.hold()
      let answer = rig.publishing("ada", 1)
      await rig.log.untilHeld()
      await turn()  // its time is over, and the spool waits for the other one's lock
      let ends = (0..<2).map { _ in
        Task(executorPreference: Loop.executor) { await rig.publisher.close(by: .now) }
      }
      await turn()
      try other.execute("ROLLBACK")
      // Spooled, or refused where that lock was held for longer than the spool waits.
      _ = await answer.result
      for end in ends { await end.value }
    }
  }

  /// A signing key's record: without it nobody's event is accepted, however well the log is.
  @Test func whatHasNoOrderDoesNotWaitForItsOwnInASpoolThatTakesNothing() async throws {
    try await PublisherRig.run(limit: 2 << 10, drains: false) { rig in
      let key = EventRecord(topic: .signingKeys, key: Array("W6WcOKB".utf8), value: Array("{}".utf8), headers: [])
      rig.log.fault = { _ in .sample(.unavailable) }
      #expect(try await rig.publisher.publish(key, as: nil) == .spooled)
      var count = 0
      await #expect(throws: EventLogError.self) {
        while count < 10_000 {
          try await rig.publish("ada", count + 1)
          count += 1
        }
      }
      await #expect(throws: EventLogError.self) { try await rig.publisher.publish(key, as: nil) }
      rig.log.fault = { _ in nil }
      #expect(count > 0 && rig.log.signingKeys.isEmpty && rig.spool.depth == count + 1)
      #expect(try await rig.publisher.publish(key, as: nil) != .spooled)
      #expect(rig.log.signingKeys.count == 1)
      // An account's records have an order.
      await #expect(throws: EventLogError.self) { try await rig.publish("ada", count + 1) }
      #expect(try await rig.publish("bob", 1) == .published(EventLogPosition(partition: 0, offset: 0)))
      try await rig.again { rig in
        try await rig.untilDrained()
        #expect(rig.log.signingKeys.count == 1 && rig.published == (1...count).map { "ada-\($0)" })
      }
    }
  }

  @Test func whatIsDamagedInTheSpoolStaysThereAndKeepsNobodyWaiting() async throws {
    try await PublisherRig.run(drains: false) { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      // More than are read at once.
      for number in 1...300 { #expect(try await rig.publish("ada", number) == .spooled) }
      #expect(try await rig.publish("bob", 1) == .spooled)
      let other = try Database(rig.spoolFile, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
      try other.execute("UPDATE record SET headers = x'ff' WHERE sequence < 300")
      try await rig.again { rig in
        try await until { rig.spool.depth == 299 }
        #expect(rig.published.sorted() == ["ada-300", "bob-1"])
        #expect(rig.spool.damaged == Set(1...299))
        #expect(rig.lines.lines.count { $0.contains("a record in the spool is damaged") } == 299)
        // Its account goes on, too.
        #expect(try await rig.publish("ada", 301) == .published(EventLogPosition(partition: 0, offset: 2)))
        let report = try SpoolReport(lookingInto: rig.spoolDirectory, listing: 1)
        #expect(report.records == 299 && report.damaged == Array(1...299) && report.first.isEmpty)
      }
    }
  }

  @Test(
    arguments: [
      "UPDATE record SET headers = x'ff' WHERE sequence = 1", "UPDATE record SET value = x'ff' WHERE sequence = 1",
      "UPDATE record SET topic = CAST(x'736977ff' AS TEXT) WHERE sequence = 1",
    ] as [StaticString])
  func aDamagedRowLetsTheNextRunStart(_ damage: StaticString) async throws {
    try await PublisherRig.run(drains: false) { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      for person in ["ada", "bob"] { #expect(try await rig.publish(person, 1) == .spooled) }
      let other = try Database(rig.spoolFile, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
      try other.execute(damage)
      try await rig.again { rig in try await until { rig.published.contains("bob-1") } }
    }
  }

  @Test func aRecordThatCannotBeReadNowKeepsNobodyElseWaitingAndFollowsOnceItCan() async throws {
    try await PublisherRig.run(drains: false) { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      for person in ["ada", "bob", "eve"] { #expect(try await rig.publish(person, 1) == .spooled) }
      let other = try Database(rig.spoolFile, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
      // To read the value of the second one fails: there is no such number.
      try other.execute(
        """
        DROP VIEW held;
        CREATE VIEW held AS
          SELECT sequence, since, size, topic, key, headers,
            CASE WHEN sequence = 2 THEN abs(-9223372036854775807 - 1) ELSE value END AS value
          FROM record WHERE NOT EXISTS (SELECT 1 FROM gone WHERE gone.sequence = record.sequence);
        """)
      try await rig.again { rig in
        try await until { rig.published.count == 2 }
        #expect(rig.published == ["ada-1", "eve-1"])
        try await until { rig.spool.depth == 1 }
        try other.execute(
          """
          DROP VIEW held;
          CREATE VIEW held AS
            SELECT * FROM record WHERE NOT EXISTS (SELECT 1 FROM gone WHERE gone.sequence = record.sequence);
          """)
        try await rig.untilDrained()
        #expect(rig.published == ["ada-1", "eve-1", "bob-1"])
        #expect(rig.lines.lines.count { $0.contains("the spool cannot be read") } >= 1)
      }
    }
  }

  @Test func anAccountThatTheLogRefusesKeepsNobodyElseWaiting() async throws {
    try await PublisherRig.run { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      for number in 1...3 {
        for person in ["ada", "bob", "eve"] { #expect(try await rig.publish(person, number) == .spooled) }
      }
      rig.log.fault = { $0.key == Array("ada".utf8) ? .sample(.refused) : nil }
      try await until { rig.spool.depth == 3 }
      #expect(rig.published.filter { $0.hasPrefix("bob") } == ["bob-1", "bob-2", "bob-3"])
      #expect(rig.published.count == 6)
      rig.log.fault = { _ in nil }
      try await rig.untilDrained()
      #expect(rig.published.suffix(3) == ["ada-1", "ada-2", "ada-3"])
    }
  }

  @Test(arguments: EventLogError.Outcome.allCases)
  func aRecordThatTheLogNeverTakesKeepsNobodyElseFromIt(_ outcome: EventLogError.Outcome) async throws {
    try await PublisherRig.run { rig in
      let faults = FaultOfOne("ada", .sample(outcome))
      rig.log.fault = { faults.next($0) }
      #expect(try await rig.publish("ada", 1) == .spooled)
      // What is refused says nothing of others' records.
      let first = try await rig.publish("bob", 1)
      #expect(first == (outcome == .refused ? .published(EventLogPosition(partition: 0, offset: 0)) : .spooled))
      try await until { rig.spool.depth == 1 }
      for number in 2...4 {
        let count = faults.count
        try await until { faults.count > count }
        let acceptance = try await rig.publish("bob", number)
        #expect(acceptance == .published(EventLogPosition(partition: 0, offset: Int64(number - 1))))
      }
      let refusals = rig.lines.lines.count { $0.contains("the log refuses a record") }
      #expect(refusals == (outcome == .refused ? 1 : 0))
    }
  }

  // MARK: What its own topic never takes

  /// Refuses the first event on its own topic, and whatever comes to `topics`.
  private func refuse(_ log: MemoryLog, orOn topics: Topic...) {
    log.fault = { record in
      let isFirst = record.topic == .accountEvents && record.text(of: "ce_id") == "event-1"
      return isFirst || topics.contains(record.topic) ? .sample(.refused) : nil
    }
  }

  private func ids(on topic: Topic, _ rig: PublisherRig) -> [String?] {
    rig.log.records.filter { $0.topic == topic }.map { $0.text(of: "ce_id") }
  }

  @Test func whatItsTopicNeverTakesWaitsInQuarantineAndKeepsNobodyWaiting() async throws {
    try await PublisherRig.run { rig in
      refuse(rig.log)
      for number in 1...3 { try await rig.publish(.sample(number)) }
      try await rig.untilDrained()
      #expect(ids(on: .quarantine, rig) == ["event-1"] && ids(on: .accountEvents, rig) == ["event-2", "event-3"])
      let letter = try #require(rig.log.records.first { $0.topic == .quarantine })
      #expect(letter.text(of: "quarantine-reason") == "refused" && letter.text(of: "apple-jws") == "what Apple signed")
      #expect(letter.key == Array("A1B2C3D4E5 com.example.app event-1".utf8))
      #expect(letter.value == EventRecord(AccountEvent.sample(1), jws: nil).value)
      #expect(rig.metric(#"siwa_ingress_events_quarantined_total{reason="refused"}"#) == "1")
      #expect(rig.metric("siwa_spool_refused_records") == "0")
      let lines = rig.lines.lines.filter { $0.contains("which is in quarantine now") }
      #expect(lines.count == 1 && lines[0].contains("event-1") && !lines[0].contains("ada"))
      let again = try await rig.publish(.sample(1))
      #expect(again == .repeated, "Apple delivers it again")
    }
  }

  @Test func whatQuarantineRefusesTooStaysInTheSpoolUntilItIsTaken() async throws {
    try await PublisherRig.run { rig in
      refuse(rig.log, orOn: .quarantine)
      for number in 1...2 { try await rig.publish(.sample(number)) }
      try await rig.publish(.sample(3, of: "bob"))
      try await until {
        ids(on: .accountEvents, rig) == ["event-3"] && rig.spool.depth == 2
          && rig.metric("siwa_spool_refused_records") == "1"
      }
      refuse(rig.log)
      try await rig.untilDrained()
      #expect(ids(on: .quarantine, rig) == ["event-1"] && ids(on: .accountEvents, rig) == ["event-3", "event-2"])
      #expect(rig.metric("siwa_spool_refused_records") == "0")
    }
  }

  /// A broker refuses a batch as a whole, whosever records are in it.
  @Test func whatIsTooLargeInABatchIsOnItsTopicAlone() async throws {
    try await PublisherRig.run { rig in
      rig.log.fault = { _ in .tooLarge }
      rig.log.faultAlone = { _ in nil }
      for number in 1...3 { try await rig.publish(.sample(number)) }
      let key = EventRecord(topic: .signingKeys, key: Array("W6WcOKB".utf8), value: Array("{}".utf8), headers: [])
      _ = try await rig.publisher.publish(key, as: nil)
      try await rig.untilDrained()
      #expect(ids(on: .accountEvents, rig) == ["event-1", "event-2", "event-3"] && ids(on: .quarantine, rig) == [])
      #expect(rig.log.signingKeys.count == 1)
      #expect(rig.lines.lines.allSatisfy { !$0.contains("the log refuses a record") })
    }
  }

  @Test func whatIsTooLargeAloneWaitsInQuarantine() async throws {
    try await PublisherRig.run { rig in
      rig.log.fault = { $0.topic == .accountEvents ? .tooLarge : nil }
      rig.log.faultAlone = { $0.text(of: "ce_id") == "event-1" ? .tooLarge : nil }
      for number in 1...3 { try await rig.publish(.sample(number)) }
      try await rig.untilDrained()
      #expect(ids(on: .accountEvents, rig) == ["event-2", "event-3"] && ids(on: .quarantine, rig) == ["event-1"])
    }
  }

  /// A broker refuses a batch as a whole, for one of its records or because it was damaged on its way.
  @Test func whatIsRefusedWithItsBatchAloneIsPublished() async throws {
    try await PublisherRig.run { rig in
      rig.log.fault = { $0.topic == .accountEvents ? .sample(.refused) : nil }
      rig.log.faultAlone = { $0.text(of: "ce_id") == "event-1" ? .sample(.refused) : nil }
      for number in 1...3 { try await rig.publish(.sample(number)) }
      try await rig.untilDrained()
      #expect(ids(on: .accountEvents, rig) == ["event-2", "event-3"] && ids(on: .quarantine, rig) == ["event-1"])
    }
  }

  /// It was not acknowledged, so the spool has it still.
  @Test func whatWasOnItsWayToQuarantineIsBroughtThereByTheNextProcess() async throws {
    try await PublisherRig.run { rig in
      refuse(rig.log)
      rig.log.hold { $0.topic == .quarantine }
      try await rig.publish(.sample(1))
      try await until { rig.log.waiting.count == 1 }
      try await rig.again(holding: true) { rig in
        refuse(rig.log)
        rig.log.release()
        try await rig.untilDrained()
        #expect(ids(on: .quarantine, rig) == ["event-1"] && ids(on: .accountEvents, rig).isEmpty)
      }
    }
  }

  // MARK: Who fails, and who does not

  /// Twenty keep failing, and occupy the log for long each time. Fifty others failed in an outage that is over.
  @Test func fiftyHealthyAccountsBehindTwentyThatKeepFailingGetThroughAtOnce() async throws {
    try await PublisherRig.run { rig in
      let dead = Set((0..<20).map { Array("dead\($0)".utf8) })
      let tries = Counts()
      rig.log.fault = {
        tries.count($0)
        return .sample(.unavailable)
      }
      for person in 0..<20 { #expect(try await rig.publish("dead\(person)", 1) == .spooled) }
      try await until { dead.allSatisfy { tries.of($0) >= 4 } }
      for person in 0..<50 { #expect(try await rig.publish("p\(person)", 1) == .spooled) }
      try await until { (0..<50).allSatisfy { tries.of(Array("p\($0)".utf8)) >= 1 } }
      // From now on the log is well, but for the twenty: nobody hears anything of their records.
      rig.log.hold { $0.key.map(dead.contains) ?? false }
      rig.log.fault = { $0.key.map(dead.contains) ?? false ? .sample(.unavailable) : nil }
      try await until { rig.published.count == 50 && rig.spool.depth == 20 && !rig.log.waiting.isEmpty }
      #expect(rig.published.allSatisfy { $0.hasPrefix("p") })
      // Neither are the twenty given up.
      rig.log.fault = { _ in nil }
      rig.log.release()
      try await rig.untilDrained()
      #expect(rig.published.count == 70)
    }
  }

  @Test func aStragglerDoesNotHoldUpAnotherAccount() async throws {
    try await PublisherRig.run { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      #expect(try await rig.publish("ada", 1) == .spooled)
      rig.log.hold { $0.key == Array("ada".utf8) }
      await rig.log.untilHeld()
      // The log is still suspected, so this one goes through the spool.
      rig.log.fault = { _ in nil }
      #expect(try await rig.publish("bob", 1) == .spooled)
      try await until { rig.published == ["bob-1"] && rig.spool.depth == 1 }
      #expect(try await rig.publish("bob", 2) != .repeated)
      try await until { rig.published == ["bob-1", "bob-2"] && rig.spool.depth == 1 }
      #expect(rig.log.waiting.count == 1)
    }
  }

  @Test func whatGoesWrongWithOneAccountSendsNobodyElseToTheSpool() async throws {
    try await PublisherRig.run { rig in
      let first = try await rig.publish("bob", 1)
      #expect(first == .published(EventLogPosition(partition: 0, offset: 0)))
      rig.log.fault = { $0.key == Array("ada".utf8) ? .sample(.unavailable) : nil }
      #expect(try await rig.publish("ada", 1) == .spooled)
      #expect(try await rig.publish("bob", 2) == .published(EventLogPosition(partition: 0, offset: 1)))
      #expect(!rig.lines.lines.contains { $0.contains("the spool takes over") })
    }
  }

  /// What was remembered is gone, as after a power failure; the spool knows what it holds.
  @Test func whatTheSpoolHoldsIsNotAcceptedAgainThoughTheMemoryIsLost() async throws {
    try await PublisherRig.run(drains: false) { rig in
      rig.log.fault = { _ in .sample(.unavailable) }
      for number in 1...2 { #expect(try await rig.publish("ada", number) == .spooled) }
      await rig.publisher.close(by: .now)
      #expect(unsafe unlink(rig.spoolDirectory + "/accepted-events") == 0)
      try await rig.again { rig in
        for number in 1...2 {
          let acceptance = try await rig.publish("ada", number)
          #expect(acceptance == .repeated)
        }
        try await rig.untilDrained()
        #expect(rig.published == ["ada-1", "ada-2"])
      }
    }
  }

  /// Many people at once, and a log that fails, is late, and takes what it reports as uncertain, at random.
  @Test func theOrderOfEachAccountHoldsWhateverTheLogDoes() async throws {
    var random = SeededRandom()
    for _ in SeededRandom.rounds(5) {
      let seed = random.next()
      try await PublisherRig.run(patience: .milliseconds(1)) { rig in
        let faults = LogFaults(seed)
        rig.log.takesWhatItReportsAsUncertain = true
        rig.log.fault = { _ in faults.next() }
        let (people, events) = (20, 15)
        try await withThrowingTaskGroup { group in
          for person in 0..<people {
            group.addTask(executorPreference: Loop.executor) {
              for number in 0..<events { _ = try await rig.publish("p\(person)", number) }
            }
          }
          group.addTask(executorPreference: Loop.executor) { await rig.log.flicker(until: people * events) }
          try await group.waitForAll()
        }
        faults.end()
        try await rig.untilDrained()
        for person in 0..<people {
          let published = rig.published.filter { $0.hasPrefix("p\(person)-") }
          let once = published.indices.filter { $0 == 0 || published[$0] != published[$0 - 1] }.map { published[$0] }
          #expect(once == (0..<events).map { "p\(person)-\($0)" }, "seed \(random.seed)")
        }
      }
    }
  }
}

/// What goes wrong with the records of one person, and how often it did.
@Loop
private final class FaultOfOne {
  private let key: [UInt8]
  private let fault: EventLogError
  private(set) var count = 0

  init(_ person: String, _ fault: EventLogError) { (key, self.fault) = (Array(person.utf8), fault) }

  func next(_ record: EventRecord) -> EventLogError? {
    guard record.key == key else { return nil }
    count += 1
    return fault
  }
}

/// How often each account's records came.
@Loop
private final class Counts {
  private var counts: [[UInt8]: Int] = [:]

  func count(_ record: EventRecord) { counts[record.key ?? [], default: 0] += 1 }

  func of(_ key: [UInt8]) -> Int { counts[key] ?? 0 }
}

/// What goes wrong with a log, at random.
@Loop
private final class LogFaults {
  private var random: SeededRandom
  private var isOver = false

  init(_ seed: UInt64) { random = SeededRandom(seed: seed) }

  func end() { isOver = true }

  func next() -> EventLogError? {
    isOver || Int.random(in: 0..<4, using: &random) > 0
      ? nil : EventLogError.Outcome.allCases.randomElement(using: &random).map { .sample($0) }
  }
}
