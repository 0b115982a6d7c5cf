import AccountEvents
import AccountServices
import AccountStore
import ConsumerSupport
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

  @Test func knowsWhichRecordsAreDoneBeyondTheFirstThatIsNot() {
    for _ in SeededRandom.rounds(20) {
      var random = SeededRandom()
      var progress = PartitionProgress(from: 5)
      var (open, end) = (Set<Int64>(), 5 as Int64)
      for _ in 0..<4000 {
        if open.count < 300, Bool.random(using: &random) {
          progress.begin(end, time: nil)
          open.insert(end)
          end += 1
        } else if let offset = open.sorted().dropFirst(Int.random(in: 0...1, using: &random)).randomElement(
          using: &random)
        {
          progress.finish(offset)
          open.remove(offset)
        }
      }
      let head = open.min() ?? end
      let done = (head..<end).filter { !open.contains($0) }
      let ranges = progress.doneBeyond(limit: .max)
      #expect(ranges.flatMap { Array($0) } == done, "SEED=\(random.seed)")
      #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }, "SEED=\(random.seed)")
      #expect(progress.doneBeyond(limit: 2) == Array(ranges.prefix(2)), "SEED=\(random.seed)")
      // What the store keeps of it says the same.
      let time = Timestamp.sample(1_800_000_000_000)
      let announced = AnnouncedRecords(mark(head, AnnouncedRecords.words(ranges, from: head, until: time)))
      #expect(
        (0..<end + 3).filter { announced.contains($0, settledAt: time) } == (0..<end).filter { !open.contains($0) })
      #expect(!(0..<end).contains { announced.contains($0, settledAt: time + .milliseconds(1)) }, "settled since")
    }
  }

  @Test(arguments: ["7", "1-", "3-1", "1-2 x", "-3-4", "0-9223372036854775807", "1-2,4-5"])
  func wordsThatNobodyKnowsSayNothing(_ words: String) {
    let time = Timestamp.sample(5)
    let announced = AnnouncedRecords(mark(3, "@5 \(words)"))
    #expect((0..<20).filter { announced.contains($0, settledAt: time) } == [0, 1, 2])
    let timeless = AnnouncedRecords(mark(3, words))
    #expect(!(0..<20).contains { timeless.contains($0, settledAt: time) })
  }

  private func mark(_ offset: Int64, _ words: String) -> AnnouncedMark {
    AnnouncedMark(
      consumer: "sample", partition: SourcePartition(topic: "t", partition: 0), claim: 1, offset: offset, beyond: words)
  }
}
