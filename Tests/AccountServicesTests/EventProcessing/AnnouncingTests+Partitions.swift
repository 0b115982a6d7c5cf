import AccountServices
import AccountStore
import ConsumerSupport
import EventLoop
import TestSupport
import Testing

/// Whose a partition is, and how far the group is told to be.
extension AnnouncingTests {
  // MARK: Claims

  @Test func aPartitionThatWentWhileTheStoreWasAwayIsNotClaimedAnyMore() async throws {
    let first = try await ProcessorRig(telling())
    first.store.before = { call throws(AccountStoreError) in
      if call == .claim { throw AccountStoreError(.unavailable, "away") }
    }
    first.source.assign([.events(0)])
    try await until { first.store.counts[.claim, default: 0] > 0 }
    first.source.lose([.events(0)])
    await turn()
    let second = try await ProcessorRig(telling(), beside: first)
    try await second.assign(0)
    first.store.before = { _ in }
    try await first.advance(by: .seconds(60))
    // Or the second would confirm nothing any more, and who comes after it would say all of it again.
    try await second.send(.sample(1))
    try await second.advance(by: .seconds(1))
    await second.drain()
    await first.drain()
    #expect(said(second).count == 1)
    second.cluster.committed = [:]
    let third = try await ProcessorRig(telling(), beside: second)
    try await third.assign(0)
    #expect(said(third).count == 1)
    await third.drain()
  }

  // MARK: Commits

  /// A process whose first commit waits for the store: event 1 is done, and event 2, which a later commit tells of.
  private func slowlyCommitting(_ gate: Signal) async throws -> ProcessorRig {
    let rig = try await ProcessorRig(telling())
    try await rig.assign(0)
    try await rig.send(.sample(1))
    var (isRaising, raises) = (false, 0)
    rig.store.beforeSettling = { settlements throws(AccountStoreError) in isRaising = settlements.isEmpty }
    rig.store.gate = { call in
      guard call == .settle, isRaising else { return }
      raises += 1
      if raises == 1 { await gate.wait() }
    }
    rig.alarm.advance(by: .seconds(1))
    try await until { raises == 1 }
    rig.put(.of(.sample(2)))
    try await until { said(rig).count == 2 && rig.store.underWay == 0 }
    return rig
  }

  @Test func aLaterCommitWaitsForTheOneBefore() async throws {
    let gate = Signal()
    let rig = try await slowlyCommitting(gate)
    rig.alarm.advance(by: .seconds(1))
    await turn()
    #expect(rig.committed() ?? 0 == 0)
    gate.fire()
    try await rig.untilIdle()
    #expect(rig.committed() == 1)
    try await rig.advance(by: .seconds(1))
    #expect(rig.committed() == 2)
    await rig.drain()
  }

  @Test func whatGoesIsNotSetBackOnItsWay() async throws {
    let gate = Signal()
    let rig = try await slowlyCommitting(gate)
    rig.source.whileReleasing = {
      gate.fire()
      while rig.store.settling > 0 { await turn() }
      await turn()
    }
    rig.source.revoke([.events(0)])
    try await until { rig.source.partitions.isEmpty }
    #expect(rig.committed() == 2)
    await rig.drain()
  }

  @Test func theLastCommitDoesNotWait() async throws {
    let gate = Signal()
    let rig = try await slowlyCommitting(gate)
    let ending = Task(executorPreference: Loop.executor) { await rig.processor.end(within: .seconds(3600)) }
    try await until { rig.committed() == 2 }
    await ending.value
    gate.fire()
    try await rig.untilIdle()
    #expect(rig.committed() == 2)
    await rig.stop()
  }
}
