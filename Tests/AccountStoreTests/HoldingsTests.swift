import AccountEvents
import AccountStore
import EventLoop
import Testing

/// What a store says that it holds of an account.
@Loop @Suite struct HoldingsTests {
  private let account = Sample.account(1)

  /// Whatever a store can hold of two people, of whom one is then erased but for two targets.
  private func eraseInPart(in store: any AccountStore) async throws {
    try await store.fill(1...2)
    let erasure = Sample.event("gone", of: account, at: 5, severity: 2)
    for (target, state) in [("shop", ErasureStep.State.failed), ("law", .retained), ("mails", .erased)] {
      try await store.record(
        ErasureStep(
          target: target, state: state, before: nil, affected: nil, after: nil, detail: "", time: Sample.time(6)),
        of: erasure)
    }
    _ = try await store.settle([erasure.settled(by: Sample.eraser, .eraseAccount(isFinal: true))], at: Sample.time(6))
  }

  @Test(arguments: Implementation.all)
  func whatIsHeldOfAnAccountIsSaidAndNothingOfOthers(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation) { store, administration throws in
      #expect(try await administration.holdings(of: account) == AccountHoldings())
      try await store.fill(1...2)
      var held = try await administration.holdings(of: account)
      #expect(held.isKept && held.tokens == 1 && held.hasMailState && held.erasedAt == nil)
      #expect(held.events.map(\.text) == ["e1"] && held.left.isEmpty && held.traces > 0)

      try await eraseInPart(in: store)
      held = try await administration.holdings(of: account)
      #expect(!held.isKept && held.tokens == 0 && !held.hasMailState && held.erasedAt == Sample.time(5))
      #expect(Set(held.events.map(\.text)) == ["e1", "gone"] && held.left.map(\.state) == [.failed, .retained])
      let other = try await administration.holdings(of: Sample.account(2))
      #expect(other.isKept && other.tokens == 1 && other.left.isEmpty)
    }
  }

  /// After so many steps of the rotation some rows bear one hash, and some the other.
  @Test(arguments: Implementation.all, [0, 1, 2, 3, 5, 8, 13])
  func theSameIsSaidWhileTheHashingKeyIsReplaced(_ implementation: Implementation, steps: Int) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    try await eraseInPart(in: store)
    let people = [account, Sample.account(2)]
    func held() async throws -> [AccountHoldings] {
      var all: [AccountHoldings] = []
      for person in people { all.append(try await prepared.administration.holdings(of: person)) }
      return all
    }
    let before = try await held()
    let rotation = try await prepared.rotate(1)
    #expect(try await rotation.begin(newHashKey()))
    for _ in 0..<steps { _ = try await rotation.step() }
    for (held, before) in zip(try await held(), before) {
      #expect(Set(held.left) == Set(before.left) && held.left.count == before.left.count)
      var (held, before) = (held, before)
      (held.left, before.left) = ([], [])
      #expect(held == before)
    }
    try await rotation.finish()
    #expect(try await held() == before)
    await store.close()
  }
}
