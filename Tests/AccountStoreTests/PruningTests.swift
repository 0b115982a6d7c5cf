import AccountEvents
import AccountStore
import EventLoop
import Synchronization
import Testing

/// What a store forgets, and what never.
@Loop @Suite struct PruningTests {
  private func step(_ target: String, _ state: ErasureStep.State, _ seconds: Int64) -> ErasureStep {
    ErasureStep(
      target: target, state: state, before: nil, affected: nil, after: nil, detail: "", time: Sample.time(seconds))
  }

  @Test(arguments: Implementation.all)
  func whatWasSettledBeforeIsForgottenAndNothingElse(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      func prune(isRehearsal: Bool = false) async throws -> StorePruning {
        try await administration.prune(before: Sample.time(100), eraser: Sample.eraser, isRehearsal: isRehearsal) {
          _ in
        }
      }
      #expect(try await prune() == StorePruning(), "there is nothing")
      func settle(_ id: String, at seconds: Int64, by consumer: ConsumerName = Sample.relay) async throws {
        _ = try await store.settle(
          [Sample.event(id, of: Sample.account(id.count), at: seconds).settled(by: consumer)], at: Sample.time(seconds))
      }
      // More than are deleted at once.
      let many = (0..<2500).map { Sample.event("many-\($0)", of: Sample.account($0), at: 1).settled() }
      _ = try await store.settle(many, at: Sample.time(99))
      try await settle("young", at: 100)
      let (over, open, kept) = (
        Sample.event("over", at: 5), Sample.event("open", at: 5), Sample.event("retained", at: 5)
      )
      for event in [over, open, kept] {
        try await store.record(step("shop", .erased, 50), of: event)
        _ = try await store.settle([event.settled(by: Sample.relay)], at: Sample.time(60))
      }
      try await store.record(step("mails", .discarded, 55), of: over)
      try await store.record(step("mails", .failed, 55), of: open)
      try await store.record(step("invoices", .retained, 55), of: kept)
      for event in [over, kept] { _ = try await store.settle([event.settled(by: Sample.eraser)], at: Sample.time(70)) }
      // Not settled: it may wait as a dead letter, and goes on where it was, without what somebody has discarded.
      let (waiting, decided) = (Sample.event("waiting", at: 5), Sample.event("decided", at: 5))
      for event in [waiting, decided] { try await store.record(step("shop", .erased, 50), of: event) }
      try await store.record(step("mails", .discarded, 55), of: decided)
      for (id, seconds) in [("letter", 50), ("open", 50), ("fresh", 100)] as [(String, Int64)] {
        _ = try await store.count([
          FailedAttempt(at: Sample.event(id, at: 5), by: Sample.eraser, cause: "any", time: Sample.time(seconds))
        ])
      }

      var expected = StorePruning()
      (expected.settled, expected.steps, expected.attempts) = (2502, 2, 1)
      #expect(try await prune(isRehearsal: true) == expected)
      #expect(try await administration.verify { _ in }.settled == 2506, "nothing is deleted")
      #expect(try await prune() == expected)
      #expect(try await prune() == StorePruning())
      let report = try await administration.verify { _ in }
      #expect(report.settled == 4 && report.findings == [])
      var steps: [Int] = []
      for event in [over, open, kept, waiting, decided] {
        steps.append(try await store.erasureSteps(of: event.id).count)
      }
      #expect(steps == [0, 2, 2, 1, 2])
      #expect(try await store.incompleteErasures(by: Sample.eraser) == 1)
      #expect(try await store.openErasures(by: Sample.eraser, after: nil, limit: 10).map(\.attempts) == [1])
      let attempted = ["letter", "fresh"].map { Sample.event($0, of: Sample.account(9999), at: 5) }
      #expect(
        try await store.standings(of: attempted, for: Sample.eraser) == [
          .open(FailedAttempts()), .open(FailedAttempts(count: 1, since: Sample.time(100))),
        ])
    }
  }

  /// A record that comes from elsewhere, when the ledger has long forgotten it.
  @Test(arguments: Implementation.all)
  func anEventThatComesAgainAfterItsRowIsForgottenHasNoEffect(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      let event = Sample.event("a", at: 5).settled(.setRelay(Sample.enabled(5)))
      let erased = Sample.event("b", of: Sample.account(2), at: 5, yieldsTo: [.erasure])
        .settled(.setRelay(Sample.enabled(5)))
      let erasure = Sample.event("c", of: Sample.account(2), at: 9)
        .settled(by: Sample.eraser, .eraseAccount(isFinal: true))
      _ = try await store.settle([event, erased, erasure], at: Sample.time(10))
      let said = Mutex<[StoreProgress]>([])
      let pruning = try await administration.prune(
        before: Sample.time(1000), eraser: Sample.eraser, isRehearsal: false
      ) { progress in said.withLock { $0.append(progress) } }
      #expect(pruning.settled == 3)
      let stages = said.withLock { $0 }
      #expect(stages.last == StoreProgress(.pruning, done: 3, total: 3) && stages.first?.stage == .counting)
      #expect(
        try await store.settle([event, erased, erasure], at: Sample.time(2000)) == [
          .superseded(.newerEvent), .superseded(.newerEvent), .superseded(.newerEvent),
        ])
      #expect(try await store.relayStates(of: [Sample.account(2)]) == [.erased(since: Sample.time(9))])
      let late = Sample.event("d", of: Sample.account(2), at: 20, yieldsTo: [.erasure])
      #expect(try await store.standings(of: [late], for: Sample.relay) == [.superseded(.erased)])
    }
  }

  @Test(arguments: Implementation.all)
  func programsRunOnMeanwhile(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      for part in 0..<4 {
        let many = (0..<1000).map {
          Sample.event("old-\(part)-\($0)", of: Sample.account($0), at: Int64(part)).settled()
        }
        _ = try await store.settle(many, at: Sample.time(10))
      }
      async let pruning = administration.prune(
        before: Sample.time(100), eraser: Sample.eraser, isRehearsal: false
      ) { _ in }
      for number in 0..<50 {
        let event = Sample.event("new-\(number)", of: Sample.account(number), at: 500)
        #expect(try await store.settle([event.settled()], at: Sample.time(500)) == [.applied])
      }
      #expect(try await pruning.settled == 4000)
      #expect(try await administration.verify { _ in }.settled == 50)
    }
  }

  @Test(arguments: Implementation.all)
  func aStoreSaysHowLargeItIs(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store throws in
      let empty = try await store.size()
      #expect(empty > 0)
      let many = (0..<2000).map { Sample.event("many-\($0)", of: Sample.account($0), at: 1).settled() }
      _ = try await store.settle(many, at: Sample.time(1))
      #expect(try await store.size() >= empty + 200_000)
    }
  }
}
