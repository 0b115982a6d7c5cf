import TestSupport
import Testing

@testable import EventLoop

@Suite struct DeadlineTests {
  @Loop
  @Test func passInTheOrderInWhichTheyAreDue() {
    var heap = DeadlineHeap()
    let deadlines = [30, 10, 20, 10, 5].map { (due: Int64) in
      let deadline = Deadline()
      heap.set(deadline, MonotonicTime(nanoseconds: due))
      return deadline
    }
    #expect(heap.next == MonotonicTime(nanoseconds: 5))
    let passed = passedDues(&heap, at: 20)
    #expect(passed == [5, 10, 10, 20])
    #expect(heap.popPassed(MonotonicTime(nanoseconds: 29)) == nil)
    #expect(heap.popPassed(MonotonicTime(nanoseconds: 30)) === deadlines[0])
    #expect(heap.count == 0)
  }

  @Loop
  @Test func passInOrderThoughTheHeapHasNotLearnedThatOneMovedLater() {
    var heap = DeadlineHeap()
    let (moved, other) = (Deadline(), Deadline())
    heap.set(moved, MonotonicTime(nanoseconds: 10))
    heap.set(other, MonotonicTime(nanoseconds: 20))
    heap.set(moved, MonotonicTime(nanoseconds: 30))
    #expect(heap.next == MonotonicTime(nanoseconds: 10), "moving later only writes a field")
    #expect(passedDues(&heap, at: 40) == [20, 30])
  }

  @Loop
  @Test func moveEarlierWithoutLeavingAnythingBehind() {
    var heap = DeadlineHeap()
    let deadline = Deadline()
    for due in stride(from: 1000, to: 0, by: -1) { heap.set(deadline, MonotonicTime(nanoseconds: Int64(due))) }
    #expect(heap.count == 1)
    #expect(passedDues(&heap, at: 1000) == [1])
  }

  @Loop
  @Test func leaveTheHeapWhenTheyAreRemoved() {
    var heap = DeadlineHeap()
    let deadlines = (0..<100).map { _ in Deadline() }
    for (index, deadline) in deadlines.enumerated() {
      heap.set(deadline, MonotonicTime(nanoseconds: Int64(index * 37 % 100)))
    }
    for deadline in deadlines where deadline.due.nanoseconds % 3 != 0 { heap.remove(deadline) }
    #expect(passedDues(&heap, at: 100) == Array(stride(from: 0, to: 100, by: 3)))
  }

  /// The heap against the plainest way to do the same: a list that is searched.
  @Loop
  @Test func behaveAsAListWould() {
    var generator = SeededRandom()
    let seed = generator.seed
    var heap = DeadlineHeap()
    let deadlines = (0..<200).map { _ in Deadline() }
    var dues: [Int: Int64] = [:]
    var now: Int64 = 0
    for _ in SeededRandom.rounds(20_000) {
      let index = Int.random(in: 0..<deadlines.count, using: &generator)
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<7:
        let due = now + Int64.random(in: 0..<500, using: &generator)
        heap.set(deadlines[index], MonotonicTime(nanoseconds: due))
        dues[index] = due
      case 7:
        heap.set(deadlines[index], .distantFuture)
        dues[index] = nil
      default:
        now += Int64.random(in: 0..<50, using: &generator)
        let expected = dues.values.filter { $0 <= now }.sorted()
        dues = dues.filter { $0.value > now }
        #expect(passedDues(&heap, at: now) == expected, "seed \(seed)")
      }
    }
  }

  @Loop
  @Test func callTheirActionOnceEachTimeTheyAreSet() async {
    let deadline = Deadline()
    var calls = 0
    let gate = Signal()
    deadline.onPass {
      calls += 1
      gate.fire()
    }
    deadline.set(.now)
    await gate.wait()
    #expect(calls == 1)
    #expect(deadline.due == .distantFuture)
    deadline.set(.now + .microseconds(50))
    await gate.wait()
    #expect(calls == 2)
  }

  @Loop
  @Test func mayBeSetAndInvalidatedByTheirOwnAction() async {
    let (first, second, third) = (Deadline(), Deadline(), Deadline())
    let gate = Signal()
    var calls: [String] = []
    first.onPass {
      calls.append("first")
      second.invalidate()
      // Anew, at a moment that has passed already: the loop goes on all the same, and it comes again.
      if calls.count < 3 { first.set(Loop.now) } else { gate.fire() }
    }
    second.onPass { calls.append("second") }
    third.onPass { [unowned third] in
      calls.append("third")
      third.invalidate()
    }
    let due = MonotonicTime.now
    first.set(due)
    second.set(due + .nanoseconds(1))
    third.set(due + .nanoseconds(2))
    await gate.wait()
    for deadline in [first, second, third] { deadline.invalidate() }
    #expect(calls.filter { $0 == "first" }.count >= 2)
    #expect(!calls.contains("second"))
    #expect(calls.contains("third"))
  }

  /// The loop was kept from turning until the moment had long passed. What arrived meanwhile is worked on first.
  @Loop
  @Test func comeAfterWhatTheKernelHasToReport() async throws {
    let listening = try ListeningSocket(.loopback(port: 0))
    let deadline = Deadline()
    var calls = 0
    deadline.onPass { calls += 1 }
    let serving = Task(executorPreference: Loop.executor) { try await serve(listening, by: deadline) }
    await turn()
    deadline.set(.now + .microseconds(1))
    let client = try RawClient(listening.address)
    // Who connects is told before who listens; what is acknowledged has come to a connection that waits.
    try client.sendAtOnce([0])
    client.settle()
    while MonotonicTime.now <= deadline.due {}
    try await serving.value
    await turn()
    #expect(calls == 0)
    client.close()
    listening.close()
  }

  @Loop
  private func serve(_ listening: ListeningSocket, by deadline: Deadline) async throws {
    let accepted = try await listening.accept()
    deadline.clear()
    accepted?.close()
  }

  @Loop
  @Test func letGoOfTheirActionWhenInvalidated() {
    final class Held {}
    let deadline = Deadline()
    weak var held: Held?
    do {
      let object = Held()
      held = object
      deadline.onPass { withExtendedLifetime(object) {} }
      deadline.set(.now + .seconds(3600))
    }
    #expect(held != nil)
    deadline.invalidate()
    #expect(held == nil)
    deadline.invalidate()
  }

  @Test func saturateInsteadOfOverflowing() {
    let late = MonotonicTime(nanoseconds: .max - 5)
    #expect(late + .seconds(1) == .distantFuture)
    #expect(MonotonicTime(nanoseconds: 5) + .seconds(Int64.max) == .distantFuture)
    #expect(Duration.seconds(Int64.min).wholeNanoseconds == .min)
    #expect(Duration.nanoseconds(-7).wholeNanoseconds == -7)
    // On both sides of where 64 bits end for what is left without the factor 512: 78 minutes and 42 seconds.
    for nanoseconds: Int64 in [0, 999_999_999, 4_722_366_482_869, 4_722_366_482_870, .max] {
      #expect(Duration.nanoseconds(nanoseconds).wholeNanoseconds == nanoseconds)
    }
    #expect((Duration.nanoseconds(8) - Duration(secondsComponent: 0, attosecondsComponent: 1)).wholeNanoseconds == 7)
    #expect(MonotonicTime(nanoseconds: 70) - MonotonicTime(nanoseconds: 20) == .nanoseconds(50))
  }

  @Loop
  private func passedDues(_ heap: inout DeadlineHeap, at now: Int64) -> [Int64] {
    var passed: [Int64] = []
    while let deadline = heap.popPassed(MonotonicTime(nanoseconds: now)) {
      if deadline.due != .distantFuture { passed.append(deadline.due.nanoseconds) }
      deadline.pass()
    }
    return passed
  }
}
