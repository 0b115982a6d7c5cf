import EventLoop
import Testing

@Suite struct LoopTests {
  @Test func runsIsolatedCodeOnOneThread() async throws {
    let total = await withTaskGroup(of: Int.self) { group in
      for index in 0..<100 { group.addTask { await answer(index) } }
      return await group.reduce(0, +)
    }
    #expect(total == 4950)
  }
}

@Loop func answer(_ index: Int) -> Int { index }
