import AccountEvents
import AccountServices
import ConsumerSupport
import EventLoop
import Testing

/// Which offsets a part of a topic has.
@Loop @Suite struct TopicSectionTests {
  /// Three partitions: one that has lost its beginning, one with all that it ever had, one with nothing.
  private nonisolated static let held: [Int32: Range<Int64>] = [0: 10..<20, 1: 0..<5, 2: 7..<7]

  struct Case: Sendable {
    let from, until: TopicSection.Bound
    let ranges: [Int32: Range<Int64>]
    var gone: [Int32: Range<Int64>] = [:]
    var unknown: Set<Int32> = []
  }

  private nonisolated static let time = TopicSection.Bound.time(.sample(1000))

  @Test(
    arguments: [
      Case(from: .edge, until: .edge, ranges: [0: 10..<20, 1: 0..<5]),
      Case(from: time, until: .edge, ranges: [0: 15..<20, 1: 2..<5]),
      Case(from: .edge, until: time, ranges: [0: 10..<15, 1: 0..<2]),
      Case(from: time, until: time, ranges: [:]),
      Case(from: .offsets([0: 17]), until: .edge, ranges: [0: 17..<20]),
      Case(from: .edge, until: .offsets([1: 4]), ranges: [1: 0..<4]),
      Case(from: .offsets([0: 12, 1: 1]), until: .offsets([0: 14, 1: 99]), ranges: [0: 12..<14, 1: 1..<5]),
      Case(from: .offsets([0: 12]), until: .offsets([1: 3]), ranges: [:]),
      Case(from: .offsets([0: 99]), until: .edge, ranges: [:]),
      Case(from: .offsets([0: 3]), until: .edge, ranges: [0: 10..<20], gone: [0: 3..<10]),
      Case(from: .offsets([0: 3]), until: .offsets([0: 5]), ranges: [:], gone: [0: 3..<5]),
      Case(from: .offsets([2: 0]), until: .edge, ranges: [:], gone: [2: 0..<7]),
      Case(from: .offsets([9: 0]), until: .offsets([8: 3]), ranges: [:], unknown: [8, 9]),
      Case(from: .offsets([0: .max]), until: .offsets([0: .max]), ranges: [:]),
    ])
  func asksForNothingThatIsNotThereAndSaysWhatIsGone(_ one: Case) async throws {
    let section = TopicSection(from: one.from, until: one.until)
    let offsets = try await section.offsets(of: Self.held) { time in
      #expect(time == .sample(1000))
      return [0: 15, 1: 2, 2: 7]
    }
    #expect(offsets.ranges == one.ranges && offsets.gone == one.gone && offsets.unknown == one.unknown)
  }

  @Test func exactlyThoseOffsetsAreWhatIsLeftOfThem() async throws {
    let section = TopicSection(of: [0: 12..<14])
    let offsets = try await section.offsets(of: Self.held) { _ in [:] }
    #expect(offsets.ranges == [0: 12..<14] && offsets.gone.isEmpty)
  }
}
