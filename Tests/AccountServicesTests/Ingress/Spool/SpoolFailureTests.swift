import AccountEvents
import EventLoop
import Glibc
import SQLite
import TestSupport
import Testing

@testable import AccountServices

/// A disk that refuses, and a process that is killed.
@Loop @Suite(.serialized) struct SpoolFailureTests {
  private let rig = SpoolRig()

  /// Changes how the database behaves, under the spool's feet.
  private func execute(_ sql: StaticString, on spool: Spool) async throws {
    try await spool.keeper.run { file throws(SpoolError) in
      try SpoolError.translating("") { () throws(SQLiteError) in try file.database.execute(sql) }
    }.get()
  }

  @Test(.timeLimit(.minutes(30)))
  func aFullDiskRefusesRecordsAndLetsThemGo() async throws {
    // A page, which is all that a probe writes, finds room there: it would be said again.
    try await rig.open(probing: .seconds(3600)) { spool in
      try await execute("PRAGMA max_page_count = 12", on: spool)
      var sequences: [Int64] = []
      var refusal: SpoolError?
      while refusal == nil, sequences.count < 1000 {
        do throws(SpoolError) {
          sequences.append(try await spool.insert(SpoolRig.record(sequences.count, size: 10_000)))
        } catch {
          refusal = error
        }
      }
      #expect(refusal?.code == .full && !sequences.isEmpty)
      #expect(spool.depth == sequences.count)
      #expect(try await spool.read(after: 0, limit: 1000).map(\.sequence) == sequences)
      // In one group with what there is no room for.
      async let refused = spool.outcome(of: SpoolRig.record(9999, size: 100_000))
      async let removed: Void = spool.remove(sequences[0])
      await removed
      #expect(await refused.error?.code == .full)
      #expect(spool.depth == sequences.count - 1)
      for sequence in sequences { await spool.remove(sequence) }
      _ = try await spool.insert(SpoolRig.record(1, size: 10_000))
      #expect(try await spool.read(after: 0, limit: 10).map(\.record.number) == [1])
      #expect(rig.log.lines.count { $0.contains("the spool cannot be written") } == 1)
      #expect(rig.log.lines.last?.contains("the spool can be written again") == true)
    }
    try await rig.open { #expect($0.depth == 1) }
  }

  /// On a disk of its own, which the system makes for a moment where it lets us.
  @Test(.timeLimit(.minutes(30)), .enabled("no mount namespaces here") { try await Self.hasNamespaces() })
  func aFullDiskCanBeDrained() async throws {
    let writer = RunningProgram.path(of: "durable-writer")
    let outcome = try await RunningProgram.finish(
      path: "/usr/bin/unshare",
      Self.namespace + ["mount -t tmpfs -o size=24m tmpfs $0 && exec $1 full $0/spool 0", rig.files.path, writer])
    #expect(outcome.end == .exit(0), "\(outcome)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.count == 9, "\(outcome)")
    for round in 0..<lines.count / 3 {
      #expect(lines[3 * round].hasPrefix("refused full with "))
      #expect(lines[3 * round + 1...3 * round + 2] == ["emptied 0", "inserted again"])
    }
  }

  /// Where the reserve is there, opening takes from it; where not, the spool waits for room, and says what it holds.
  @Test(.timeLimit(.minutes(30)), .enabled("no mount namespaces here") { try await Self.hasNamespaces() })
  func aFullDiskIsNoReasonNotToStart() async throws {
    let writer = RunningProgram.path(of: "durable-writer")
    let outcome = try await RunningProgram.finish(
      path: "/usr/bin/unshare",
      Self.namespace + ["mount -t tmpfs -o size=24m tmpfs $0 && exec $1 start $0/spool 0", rig.files.path, writer])
    #expect(outcome.end == .exit(0), "\(outcome)")
    #expect(
      outcome.output.split(separator: "\n") == [
        "closed with 3", "opened with 3", "refused full", "left 2", "waits with 2 of 2 accounts, read 0",
        "refused full",
        "open again with 2", "inserted again",
      ], "\(outcome)")
  }

  /// The disk has no room for another file, is full with a damaged file on it, or with one that nobody can read.
  @Test(
    .timeLimit(.minutes(30)), .enabled("no mount namespaces here") { try await Self.hasNamespaces() },
    arguments: [
      (
        "nameless",
        ["waits with 3 of 3 accounts, set aside 0", "open again with 3, set aside 0", "holds [1, 2, 3, 4]"]
      ),
      ("damaged", ["waits with 3 of 3 accounts, set aside 0", "open again with 0, set aside 1", "holds [4]"]),
      (
        "later",
        [
          "waits with 3 of 3 accounts, set aside 0", "cannot be opened: newerVersion", "open again with 3, set aside 0",
          "holds [1, 2, 3, 4]",
        ]
      ),
      ("unreadable", ["waits with 0 of 0 accounts, set aside 1", "open again with 0, set aside 1", "holds [1]"]),
    ])
  func whatIsWrongBesidesIsNoReasonNotToStart(fault: String, lines: [Substring]) async throws {
    let writer = RunningProgram.path(of: "durable-writer")
    let outcome = try await RunningProgram.finish(
      path: "/usr/bin/unshare",
      Self.namespace
        + [
          "mount -t tmpfs -o size=24m,nr_inodes=100 tmpfs $0 && exec $1 \(fault) $0/spool 0", rig.files.path, writer,
        ])
    #expect(outcome.end == .exit(0), "\(outcome)")
    #expect(outcome.output.split(separator: "\n") == lines, "\(outcome)")
    #expect(outcome.errors.contains("the spool's file cannot be opened") == (fault == "later"), "\(outcome)")
  }

  @Test(.timeLimit(.minutes(30)))
  func nobodyWaitsForWhatWasSetAsideLater() async throws {
    try await rig.open { spool in
      _ = try await spool.insert(SpoolRig.record(1))
      let publisher = try await EventPublisher(
        log: MemoryLog(), spool: spool,
        accepted: AcceptedEvents(
          in: rig.files.path, number: 1000, time: .seconds(3600), now: { .now }, logger: rig.log.logger()),
        patience: .seconds(600), deadline: .seconds(600), pace: PublisherRig.pace,
        metrics: PublicationMetrics(rig.registry),
        logger: rig.log.logger())
      #expect(try await publisher.publish(SpoolRig.record(2), as: nil) == .spooled)
      spool.whenSetAside?()
      guard case .published = try await publisher.publish(SpoolRig.record(3), as: nil) else {
        Issue.record("it waits for what is not there")
        return
      }
      await publisher.close(by: .now)
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func aDiskThatRefusesTakesOverNothingUntilItTakesRecordsAgain() async throws {
    try await rig.open { spool in
      let log = MemoryLog()
      let publisher = try await EventPublisher(
        log: log, spool: spool,
        accepted: AcceptedEvents(
          in: rig.files.path, number: 1000, time: .seconds(3600), now: { .now }, logger: rig.log.logger()),
        patience: .seconds(600), deadline: .seconds(600), pace: PublisherRig.pace,
        metrics: PublicationMetrics(rig.registry),
        logger: rig.log.logger())
      log.unreadiness = .sample(.unavailable)
      #expect(await publisher.check() == .replaced(cause: "the spool takes over: told to"))
      try await execute("PRAGMA query_only = ON", on: spool)
      await #expect(throws: SpoolError.self) { try await spool.insert(SpoolRig.record(1)) }
      guard case .notReady(let cause) = await publisher.check() else {
        Issue.record("ready, though nothing takes records")
        return
      }
      #expect(cause.hasPrefix("told to; the spool in ") && rig.metric("siwa_spool_takes_records") == "0")
      // Nobody has to lose a notification to find out that the disk is well again.
      try await execute("PRAGMA query_only = OFF", on: spool)
      try await until { spool.takesRecords }
      #expect(await publisher.check() == .replaced(cause: "the spool takes over: told to"))
      #expect(spool.depth == 0)
      await publisher.close(by: .now)
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func aSpoolThatCannotBeReadIsSaidOnce() async throws {
    try await rig.open { spool in
      _ = try await spool.insert(SpoolRig.record(1))
      try await execute("DROP VIEW held", on: spool)
      for _ in 0..<3 {
        await #expect(throws: SpoolError.self) { try await spool.read(after: 0, limit: 10) }
      }
      #expect(rig.log.lines.count { $0.contains("the spool cannot be read") } == 1)
      #expect(rig.metric(#"siwa_spool_failures_total{cause="read"}"#) == "3")
      try await execute(
        """
        CREATE VIEW held AS
          SELECT * FROM record WHERE NOT EXISTS (SELECT 1 FROM gone WHERE gone.sequence = record.sequence)
        """, on: spool)
      #expect(try await spool.read(after: 0, limit: 10).count == 1)
      #expect(rig.log.lines.count { $0.contains("the spool can be read again") } == 1)
    }
  }

  private static let namespace = ["--user", "--map-root-user", "--mount", "/bin/sh", "-c"]

  private static func hasNamespaces() async throws -> Bool {
    let words = namespace + ["mount -t tmpfs tmpfs /mnt"]
    return try await RunningProgram.finish(path: "/usr/bin/unshare", words).end == .exit(0)
  }

  @Test(.timeLimit(.minutes(30)))
  func aRemovalIsTriedUntilTheDiskTakesIt() async throws {
    try await rig.open { spool in
      let sequence = try await spool.insert(SpoolRig.record(1))
      try await execute("PRAGMA query_only = ON", on: spool)
      async let removal: Void = spool.remove(sequence)
      let failures = #"siwa_spool_failures_total{cause="write"}"#
      try await until { rig.metric(failures).flatMap { Int($0) } ?? 0 >= 2 }
      await #expect(throws: SpoolError.self) { try await spool.insert(SpoolRig.record(2)) }
      #expect(spool.depth == 1)
      try await execute("PRAGMA query_only = OFF", on: spool)
      await removal
      #expect(spool.depth == 0)
      #expect(rig.log.lines.count { $0.contains("cannot be written") } == 1, "once, and not with every attempt")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func aRemovalThatAlwaysFailsHindersNothingElse() async throws {
    try await rig.open { spool in
      for number in 1...30 { _ = try await spool.insert(SpoolRig.record(number)) }
      try await execute(
        "CREATE TRIGGER stuck BEFORE INSERT ON gone WHEN new.sequence = 7 BEGIN SELECT raise(ABORT, 'no'); END",
        on: spool)
      async let stuck: Void = spool.remove(7)
      await withTaskGroup { group in
        for sequence in 1...30 as ClosedRange<Int64> where sequence != 7 {
          group.addTask(executorPreference: Loop.executor) { await spool.remove(sequence) }
        }
      }
      #expect(spool.depth == 1)
      for number in 31...33 { _ = try await spool.insert(SpoolRig.record(number)) }
      #expect(rig.log.lines.count { $0.contains("cannot be written") } == 1, "once, and not with every attempt")
      #expect(rig.log.lines.allSatisfy { !$0.contains("can be written again") })
      try await execute("DROP TRIGGER stuck", on: spool)
      await stuck
      #expect(spool.depth == 3 && rig.log.lines.last?.contains("can be written again") == true)
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func aRemovalThatTheDiskRefusesDoesNotHinderTheEnd() async throws {
    try await rig.open { spool in
      let sequence = try await spool.insert(SpoolRig.record(1))
      try await execute("PRAGMA query_only = ON", on: spool)
      async let removal: Void = spool.remove(sequence)
      try await until { rig.log.lines.contains { $0.contains("cannot be written") } }
      await spool.close()
      await removal
    }
    try await rig.open { #expect($0.depth == 1) }
  }

  /// The program says what was promised; twenty times it is killed in the middle of it.
  @Test(.timeLimit(.minutes(30)))
  func whatWasPromisedSurvivesTheProcess() async throws {
    var random = SeededRandom()
    var (inserted, removing, removed): (Set<Int>, Set<Int>, Set<Int>) = ([], [], [])
    for round in 0..<20 {
      let words = ["spool", rig.directory, "\(round * 1_000_000)"]
      try await RunningProgram.run("durable-writer", words) { writer in
        _ = try await writer.outputLine(with: "inserted \(round * 1_000_000 + Int.random(in: 0...400, using: &random))")
        try await writer.killAndRead()
        #expect(writer.errors == "")
        for line in writer.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
          let parts = line.split(separator: " ")
          let number = try #require(Int(parts[1]))
          switch parts[0] {
          case "inserted": inserted.insert(number)
          case "removing": removing.insert(number)
          case "removed": removed.insert(number)
          default: break
          }
        }
      }
    }
    let report = try SpoolReport(lookingInto: rig.directory, listing: 0)
    #expect(report.records >= inserted.count - removing.count, "nobody has opened it since the last kill")
    try await rig.open { spool in
      #expect(spool.depth == report.records)
      let numbers = try await spool.read(after: 0, limit: .max).compactMap(\.record.number)
      #expect(numbers.count == spool.depth && Set(numbers).count == numbers.count)
      #expect(inserted.count > 100 && removed.count > 20)
      #expect(inserted.subtracting(removing).isSubset(of: numbers), "seed \(random.seed): promised and lost")
      #expect(removed.isDisjoint(with: numbers), "seed \(random.seed): removed and there")
      for lane in 0..<8 {
        let ofLane = numbers.filter { $0 % 8 == lane }
        #expect(ofLane == ofLane.sorted(), "seed \(random.seed): out of order")
      }
    }
  }

  /// While many at a time are taken out, and the rows of those before are deleted, the program is killed again and again.
  @Test(.timeLimit(.minutes(30)))
  func whatWasTakenOutStaysOutWhateverIsKilled() async throws {
    var random = SeededRandom()
    var held = Set(0..<12_000)
    try await rig.open { spool in
      await withTaskGroup { group in
        for number in held.sorted() {
          group.addTask(executorPreference: Loop.executor) { _ = await spool.outcome(of: SpoolRig.record(number)) }
        }
      }
    }
    var kills = 0
    while !held.isEmpty {
      var (removing, removed): (Set<Int>, Set<Int>) = ([], [])
      let count = Int.random(in: 1...2500, using: &random)
      let writer = try await RunningProgram.finish(
        path: RunningProgram.path(of: "durable-writer"), ["drain", rig.directory, "\(count)"])
      try #require(writer.end == .signal(SIGKILL) && writer.errors == "", "seed \(random.seed): \(writer)")
      kills += 1
      for line in writer.output.split(separator: "\n") {
        let parts = line.split(separator: " ")
        let number = try #require(Int(parts[1]))
        if parts[0] == "removing" { removing.insert(number) } else { removed.insert(number) }
      }
      #expect(removed.count == min(count, held.count), "it was killed in the midst")
      let there = try await rig.open { try await Set($0.read(after: 0, limit: .max).compactMap(\.record.number)) }
      #expect(removed.isDisjoint(with: there), "seed \(random.seed): removed and there")
      #expect(held.subtracting(removing).isSubset(of: there), "seed \(random.seed): lost")
      #expect(there.isSubset(of: held), "seed \(random.seed): there again")
      held = there
    }
    #expect(kills > 1, "no life takes more than 3000")
  }
}
