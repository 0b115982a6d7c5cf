import AccountEvents
import EventLoop
import SQLite
import TestSupport
import Testing

@testable import AccountStore

/// A disk that refuses, processes that are killed, and several that write at once.
@Loop @Suite(.serialized) struct SQLiteFailureTests {
  private let rig: SQLiteRig
  private let now = Sample.time(10_000)

  init() throws { rig = try SQLiteRig() }

  /// As `durable-writer` names its events.
  private func event(_ number: Int) throws -> EventReference {
    let account = Account(
      team: try #require(TeamID("A1B2C3D4E5")), subject: try #require(AppleSubject("person-\(number)")))
    return Sample.event("event-\(number)", of: account, at: 0)
  }

  /// As a backup that is restored while programs run: what they write would be lost, and is said to be done.
  @Test func nothingIsWrittenToAFileWhosePlaceAnotherOneHas() async throws {
    let store = try await rig.open()
    try rig.exchangeFile()
    let settlement = Sample.event("e", of: Sample.account(1), at: 1).settled(.setRelay(Sample.enabled(1, 1)))
    for call in [
      { try await store.check() }, { _ = try await store.settle([settlement], announced: [], at: now) },
    ] as [() async throws -> Void] {
      let error = await #expect(throws: AccountStoreError.self) { try await call() }
      #expect(error?.code == .unavailable && error?.detail.contains("another file is in its place") == true)
    }
    try rig.exchangeFile()
    #expect(try await store.settle([settlement], announced: [], at: now).outcomes == [.applied])
    try rig.removeLog()
    let error = await #expect(throws: AccountStoreError.self) { try await store.check() }
    #expect(error?.code == .unavailable, "the backup was copied over the file")
    await store.close()
  }

  @Test func aFullDiskRefusesAllOfABatch() async throws {
    let store = try await rig.open()
    try await store.writer.run { file throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in
        try file.database.execute("PRAGMA max_page_count = 60")
      }
    }
    func batch(_ number: Int) -> [Settlement] {
      (0..<20).map {
        let id = number * 20 + $0
        return Sample.event("\(id)", of: Sample.account(id), at: 1)
          .settled(.setRelay(Sample.enabled(1, id)))
      }
    }
    var settled = 0
    var refusal: AccountStoreError?
    while refusal == nil, settled < 1000 {
      do throws(AccountStoreError) {
        _ = try await store.settle(batch(settled), at: now)
        settled += 1
      } catch {
        refusal = error
      }
    }
    #expect(refusal?.code == .full && refusal?.isTransient == true && settled > 0)
    for table in [
      "SELECT count(*) FROM account", "SELECT count(*) FROM mail", "SELECT count(*) FROM ledger",
      "SELECT count(*) FROM mail WHERE fence_at IS NOT NULL",
    ] as [StaticString] { #expect(try rig.number(table) == Int64(settled * 20), "\(table)") }
    #expect(try await rig.administration.verify { _ in }.findings == [])
    // With room again, it goes on where it was.
    try await store.writer.run { file throws(AccountStoreError) in
      try AccountStoreError.translating { () throws(SQLiteError) in
        try file.database.execute("PRAGMA max_page_count = 100000")
      }
    }
    #expect(try await store.settle(batch(settled), at: now).count == 20)
    await store.close()
  }

  /// Whatever the program said before it was killed is there, and nothing by halves.
  @Test(.timeLimit(.minutes(30)))
  func aKilledProcessLeavesWholeBatches() async throws {
    var random = SeededRandom()
    await (try await rig.open()).close()
    var (promised, rounds): ([Int], [Int]) = ([], [])
    for round in 0..<10 {
      let first = round * 1_000_000
      try await RunningProgram.run("durable-writer", ["store", rig.files.path, "\(first)"]) { writer in
        let last = first + Int.random(in: 1...30, using: &random) * 16 - 1
        _ = try await writer.outputLine(with: "settled \(last)")
        try await writer.killAndRead()
        #expect(writer.errors == "")
        for line in writer.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        where line.hasPrefix("settled ") {
          promised.append(try #require(Int(line.dropFirst("settled ".count))))
        }
        rounds.append(promised.last ?? first)
      }
    }
    let store = try await rig.open()
    #expect(try await rig.administration.verify { _ in }.findings == [], "seed \(random.seed)")
    var settled = 0
    // Behind the last promise of each round there may be one batch more.
    for (round, last) in rounds.enumerated() {
      for first in stride(from: round * 1_000_000, to: last + 17, by: 16) {
        let events = try (first..<first + 16).map(event)
        let standings = try await store.standings(of: events, for: Sample.relay)
        let states = try await store.relayStates(of: events.map(\.account))
        let isSettled = standings[0].isSettled
        #expect(standings.allSatisfy { $0.isSettled == isSettled }, "seed \(random.seed)")
        #expect(states.allSatisfy { ($0 != .unknown) == isSettled }, "seed \(random.seed)")
        #expect(isSettled || first > last, "seed \(random.seed)")
        if isSettled { settled += 16 }
      }
    }
    #expect(settled >= promised.count * 16)
    // The mark is as high as the last batch that is there, and no higher.
    let source = SourcePartition(topic: "apple.account-events.v1", partition: 0)
    let mark = try #require(try await store.claim([PartitionClaim(source)], for: Sample.relay).first)
    #expect(mark.claim == Int64(rounds.count + 1) && mark.beyond == "behind \(mark.offset - 16)")
    let edge = try [Int(mark.offset) - 1, Int(mark.offset)].map(event)
    #expect(try await store.standings(of: edge, for: Sample.relay).map(\.isSettled) == [true, false])
    await store.close()
  }

  @Test(.timeLimit(.minutes(30)))
  func eachEventIsAppliedByOneOfManyProcesses() async throws {
    await (try await rig.open()).close()
    let words = ["compete", rig.files.path, "1600"]
    let applied = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<3 {
        group.addTask(executorPreference: Loop.executor) {
          try await RunningProgram.run("durable-writer", words) { writer in
            let line = try await writer.outputLine(with: "applied ")
            #expect(writer.errors == "")
            return try #require(Int(line.dropFirst("applied ".count)))
          }
        }
      }
      var applied: [Int] = []
      for try await count in group { applied.append(count) }
      return applied
    }
    #expect(applied.reduce(0, +) == 1600, "\(applied)")
    let report = try await rig.administration.verify { _ in }
    #expect(report.findings == [])
    #expect(
      [report.accounts, report.relays, report.settled] == [1600, 1600, 1600])
  }
}
