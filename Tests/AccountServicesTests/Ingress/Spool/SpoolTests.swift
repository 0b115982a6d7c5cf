import AccountEvents
import AccountServices
import EventLoop
import SQLite
import TestSupport
import Testing

/// What the spool holds, in which order, and how much of it.
@Loop @Suite(.serialized) struct SpoolTests {
  private let rig = SpoolRig()

  @Test(.timeLimit(.minutes(30)))
  func givesBackWhatItWasGivenInItsOrder() async throws {
    try await rig.open { spool in
      #expect(spool.depth == 0 && spool.bytes == 0 && spool.oldest == nil)
      var sequences: [Int64] = []
      for number in 1...5 {
        sequences.append(try await spool.insert(SpoolRig.record(number, of: number == 3 ? nil : "ada")))
        rig.advance(by: .seconds(1))
      }
      #expect(sequences == sequences.sorted() && Set(sequences).count == 5)
      let records = try await spool.read(after: 0, limit: 10)
      #expect(records.map(\.sequence) == sequences)
      #expect(records.map(\.record) == (1...5).map { SpoolRig.record($0, of: $0 == 3 ? nil : "ada") })
      #expect(records.map(\.since.milliseconds) == (0..<5).map { SpoolRig.start + $0 * 1000 })
      #expect(try await spool.read(after: sequences[1], limit: 2).map(\.sequence) == [sequences[2], sequences[3]])
      #expect(spool.depth == 5 && spool.oldest?.milliseconds == SpoolRig.start)
      await spool.remove(sequences[0])
      await spool.remove(sequences[3])
      await spool.remove(sequences[3])
      await spool.remove(77)
      #expect(try await spool.read(after: 0, limit: 10).map(\.record.number) == [2, 3, 5])
      #expect(spool.depth == 3 && spool.oldest?.milliseconds == SpoolRig.start + 1000)
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func refusesWhatItHasNoRoomFor() async throws {
    let size = try await rig.open { spool in
      await spool.remove(try await spool.insert(SpoolRig.record(0)))
      _ = try await spool.insert(SpoolRig.record(0))
      return spool.bytes
    }
    try await rig.open(limit: 3 * size) { spool in
      // All at once: what is promised counts, and not only what is written.
      let outcomes = await inserted(1...5, into: spool)
      #expect(outcomes.map { $0.error?.code } == [nil, nil, .full, .full, .full])
      #expect(outcomes[4].error?.description == "the spool in \(rig.directory): it holds as much as it may")
      #expect(spool.depth == 3 && spool.bytes == 3 * size)
      #expect(rig.metric(#"siwa_spool_failures_total{cause="full"}"#) == "3")
      for record in try await spool.read(after: 0, limit: 1) { await spool.remove(record.sequence) }
      _ = try await spool.insert(SpoolRig.record(6))
      #expect(try await spool.read(after: 0, limit: 10).map(\.record.number) == [1, 2, 6])
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func isTheSameAfterItWasOpenedAgain() async throws {
    let (sequences, bytes) = try await rig.open { spool in
      var sequences: [Int64] = []
      for number in 1...3 { sequences.append(try await spool.insert(SpoolRig.record(number, size: 5000))) }
      await spool.remove(sequences[0])
      return (sequences, spool.bytes)
    }
    rig.advance(by: .seconds(60))
    try await rig.open { spool in
      #expect(spool.depth == 2 && spool.bytes == bytes && spool.oldest?.milliseconds == SpoolRig.start)
      let records = try await spool.read(after: 0, limit: 10)
      #expect(records.map(\.sequence) == Array(sequences[1...]))
      let next = try await spool.insert(SpoolRig.record(4))
      #expect(next > sequences[2])
      #expect(rig.metric("siwa_spool_oldest_age_seconds") == "60")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func writesTogetherWhatComesTogether() async throws {
    try await rig.open { spool in
      let outcomes = await inserted(1...200, into: spool)
      let sequences = try outcomes.map { try $0.get() }
      #expect(sequences == sequences.sorted())
      #expect(try await spool.read(after: 0, limit: 1000).map(\.record.number) == Array(1...200))
      let commits = try #require(rig.metric("siwa_spool_commits_total").flatMap { Int($0) })
      #expect(1...3 ~= commits, "200 records in \(commits) transactions")
      await withTaskGroup { group in
        for sequence in sequences {
          group.addTask(executorPreference: Loop.executor) { await spool.remove(sequence) }
        }
      }
      let all = try #require(rig.metric("siwa_spool_commits_total").flatMap { Int($0) })
      #expect(1...3 ~= all - commits, "200 removals in \(all - commits) transactions")
      #expect(spool.depth == 0 && spool.bytes == 0)
    }
  }

  /// So many that the rows of what is gone are deleted meanwhile, whose neighbours are there or not.
  @Test(.timeLimit(.minutes(30)), arguments: [2, 3, 50])
  func whatIsTakenOutIsNoLongerThereWhereverItWas(oneOf: Int) async throws {
    var random = SeededRandom()
    let numbers = 1...5000
    let kept = numbers.filter { $0 % oneOf == 0 }
    var left: (bytes: Int, oldest: Int64?) = (0, nil)
    try await rig.open { spool in
      let sequences = try await inserted(numbers, into: spool).map { try $0.get() }
      await withTaskGroup { group in
        for number in numbers.shuffled(using: &random) where number % oneOf != 0 {
          group.addTask(executorPreference: Loop.executor) { await spool.remove(sequences[number - 1]) }
        }
      }
      #expect(spool.depth == kept.count)
      let numbers = try await spool.read(after: 0, limit: .max).map(\.record.number)
      #expect(numbers == kept)
      let held = try await spool.heldRecords()
      #expect(held.count == kept.count && Set(held.map(\.lane)).count == 1)
      left = (spool.bytes, spool.oldest?.milliseconds)
      let report = try SpoolReport(lookingInto: rig.directory, listing: 1)
      #expect(report.records == kept.count && report.bytes == left.bytes)
      #expect(report.first.map(\.sequence) == [sequences[oneOf - 1]])
    }
    try await rig.open { spool in
      #expect(spool.depth == kept.count && spool.bytes == left.bytes && spool.oldest?.milliseconds == left.oldest)
      let numbers = try await spool.read(after: 0, limit: .max).map(\.record.number)
      #expect(numbers == kept)
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func tellsWhoseRecordsItHolds() async throws {
    try await rig.open { spool in
      for (number, person) in ["ada", "bob", nil, "ada", nil].enumerated() {
        _ = try await spool.insert(SpoolRig.record(number, of: person))
      }
      let held = try await spool.heldRecords()
      #expect(held.map(\.sequence) == Array(1...5))
      let (ada, bob) = (held[0].lane, held[1].lane)
      #expect(held[3].lane == ada && ada != bob)
      // What has no key is told apart by its value, which is the same here.
      #expect(held[2].lane == held[4].lane && ![ada, bob].contains(held[2].lane))
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func whoeverTakesAStoppedSpoolSeesWhatIsDamagedToo() async throws {
    try await rig.open { spool in
      for number in 1...2 { _ = try await spool.insert(SpoolRig.record(number)) }
      let file = "\(rig.directory)/spool.sqlite"
      let other = try Database(file, .readWrite(pageSize: 4096), busyTimeout: .seconds(300))
      try other.execute("UPDATE record SET topic = CAST(x'736977ff' AS TEXT) WHERE sequence = 1")
    }
    let stopped = try await StoppedSpool.open(rig.directory)
    let places = try await stopped.places()
    #expect(places.map(\.sequence) == [1, 2] && places[0].account == places[1].account)
    #expect(try await stopped.record(1) == nil)
    #expect(try await stopped.record(2)?.record == SpoolRig.record(2))
    try await stopped.close()
  }

  @Test(.timeLimit(.minutes(30)))
  func saysHowMuchItHolds() async throws {
    try await rig.open { spool in
      _ = await inserted(1...3, into: spool)
      await spool.remove(1)
      rig.advance(by: .milliseconds(2500))
      #expect(rig.metric("siwa_spool_records") == "2" && rig.metric("siwa_spool_bytes") == "\(spool.bytes)")
      #expect(rig.metric("siwa_spool_oldest_age_seconds") == "2.5")
      #expect(rig.metric("siwa_spool_inserts_total") == "3" && rig.metric("siwa_spool_removals_total") == "1")
    }
  }

  @Test(.timeLimit(.minutes(30)))
  func whatIsClosedTakesNothing() async throws {
    let spool = try await rig.open { spool in
      // What was asked for before is done.
      async let outcomes = inserted(1...10, into: spool)
      await Loop.nextTurn()
      await spool.close()
      for outcome in await outcomes { #expect(outcome.error.map { $0.code == .closed } ?? true) }
      return spool
    }
    #expect(await inserted(1...1, into: spool).map { $0.error?.code } == [.closed])
    await spool.remove(1)
    await #expect(throws: SpoolError.self) { try await spool.read(after: 0, limit: 1) }
  }

  /// Inserts records at the same time, in their order.
  private func inserted(_ numbers: ClosedRange<Int>, into spool: Spool) async -> [Result<Int64, SpoolError>] {
    await withTaskGroup(of: (Int, Result<Int64, SpoolError>).self) { group in
      for number in numbers {
        group.addTask(executorPreference: Loop.executor) { (number, await spool.outcome(of: SpoolRig.record(number))) }
      }
      var outcomes: [(Int, Result<Int64, SpoolError>)] = []
      while let outcome = await group.next() { outcomes.append(outcome) }
      return outcomes.sorted { $0.0 < $1.0 }.map(\.1)
    }
  }
}
