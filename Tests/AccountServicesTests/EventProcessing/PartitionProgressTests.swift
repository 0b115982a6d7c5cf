import AccountServices
import TestSupport
import Testing

/// How far a partition is done.
@Suite struct PartitionProgressTests {
  @Test func agreesWithWhoeverRemembersEverything() {
    for _ in SeededRandom.rounds(20) {
      var random = SeededRandom()
      var progress = PartitionProgress()
      var (open, next) = ([Int64](), Int64.random(in: 0...5, using: &random))
      #expect(progress.offset == nil && progress.oldest == nil)
      let most = Int.random(in: 1...3000, using: &random)
      for _ in 0..<10_000 {
        // The first one is often the last to be done.
        if open.count < most, Bool.random(using: &random) {
          progress.begin(next, time: next * 10)
          open.append(next)
          next += Int64.random(in: 1...3, using: &random)
        } else if let index = open.indices.dropFirst(Int.random(in: 0...1, using: &random)).randomElement(
          using: &random)
        {
          progress.finish(open.remove(at: index))
        }
        let isRight =
          progress.count == open.count && progress.oldest == open.first.map { $0 * 10 } && progress.isNew(next)
          && (open.isEmpty || progress.offset == open.first)
        if !isRight { Issue.record("SEED=\(random.seed)") }
      }
    }
  }
}
