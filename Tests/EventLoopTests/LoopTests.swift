import Glibc
import Synchronization
import TestSupport
import Testing

@testable import EventLoop

@Suite(.timeLimit(.minutes(30))) struct LoopTests {
  @Loop private static func thread() -> UInt64 { UInt64(pthread_self()) }

  @Test func runsIsolatedCodeOnOneThread() async {
    let own = await Self.thread()
    let threads = await withTaskGroup(of: UInt64.self) { group in
      for _ in 0..<100 { group.addTask { await Self.thread() } }
      return await group.reduce(into: Set<UInt64>()) { $0.insert($1) }
    }
    #expect(threads == [own])
    let thread = BlockingThread(named: "another")
    #expect(await thread.run { UInt64(pthread_self()) } != own)
    thread.close()
  }

  /// Work of many threads at once, each piece of which waits for another: none is lost, whether the loop sleeps or turns.
  @Test func wakesUpForWhatComesFromOtherThreads() async {
    let total = await withTaskGroup(of: Int.self) { group in
      for index in 0..<16 {
        group.addTask {
          let thread = BlockingThread(named: "other-\(index)")
          var sum = 0
          for count in 0..<100 {
            sum += await thread.run { count }
            sum += await Self.one()
          }
          thread.close()
          return sum
        }
      }
      return await group.reduce(0, +)
    }
    #expect(total == 16 * (4950 + 100))
  }

  @Loop private static func one() -> Int { 1 }

  /// With the executor's preference even what is isolated to nothing stays on the thread.
  @Test func aTaskThatPrefersTheLoopDoesNotLeaveIt() async {
    @concurrent func anywhere() async -> UInt64 { UInt64(pthread_self()) }
    let own = await Self.thread()
    let task = Task(executorPreference: Loop.executor) {
      var threads: Set<UInt64> = []
      for _ in 0..<10 {
        threads.insert(await anywhere())
        threads.insert(await Self.thread())
        await Task.yield()
        threads.insert(UInt64(pthread_self()))
      }
      return threads
    }
    #expect(await task.value == [own])
  }

  /// A job that is always ready again does not keep the loop from its sockets, its deadlines and its turns.
  @Loop
  @Test func aTaskThatIsAlwaysReadyStarvesNobody() async throws {
    let isOver = Mutex(false)
    let busy = Task(executorPreference: Loop.executor) { while !isOver.withLock({ $0 }) { await Task.yield() } }
    let listening = try ListeningSocket(.loopback(port: 0))
    let client = try RawClient(listening.address)
    let accepted = try #require(try await listening.accept())
    accepted.close()
    #expect(try await client.readToEnd() == "")
    await turn()
    try await Loop.sleep(for: .nanoseconds(1))
    isOver.withLock { $0 = true }
    await busy.value
    listening.close()
  }

  @Test func runReturnsWhatItsBodyReturns() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let result = Loop.run {
        let thread = UInt64(pthread_self())
        await Task.yield()
        return thread == UInt64(pthread_self()) ? 7 : 1
      }
      exit(result)
    }
  }

  /// In one report of the kernel: the first handler puts another into the place of the second, which is not told what was
  /// reported of its predecessor.
  @Loop
  @Test func whoTakesARemovedPlaceIsNotToldOfItsPredecessor() async throws {
    let ends = try (0..<3).map { _ in try Ends() }
    let told = Told()
    for (index, end) in ends[..<2].enumerated() {
      told.watched[index] = try WatchedDescriptor(end.ours, interest: .readable) { _ in
        told.count += 1
        guard told.count == 1 else { return }
        told.watched[1 - index]?.stop()
        told.watched[1 - index] = try? WatchedDescriptor(ends[2].ours, interest: .readable) { _ in told.successor += 1 }
      }
    }
    await turn()
    for end in ends[..<2] { end.send() }
    await turn()
    #expect(told.count >= 1)
    #expect(told.successor == 0, "nothing was sent to it")
    ends[2].send()
    await turn()
    #expect(told.successor >= 1)
    for index in 0..<2 { told.watched[index]?.stop() }
    for end in ends { end.close() }
  }

  @Loop
  private final class Told {
    var watched: [Int: WatchedDescriptor] = [:]
    var count = 0
    var successor = 0
    nonisolated init() {}
  }

  /// More than the kernel reports at once.
  @Loop
  @Test func tellsOfManyDescriptorsAtOnce() async throws {
    DescriptorLimit.raise()  // as programs do: these may be more than the tests were started with
    let ends = try (0..<400).map { _ in try Ends() }
    let descriptors = try ends.map { try Descriptor(owning: $0.ours) }
    for descriptor in descriptors { descriptor.clearReadable() }
    await turn()
    for descriptor in descriptors { descriptor.clearReadable() }
    for end in ends { end.send() }
    for descriptor in descriptors { #expect(await descriptor.untilReadable() == .ready) }
    for descriptor in descriptors { descriptor.close() }
    for end in ends { Glibc.close(end.theirs) }
  }

  /// Both ends of a connection.
  private struct Ends {
    let ours, theirs: CInt

    init() throws {
      var pair: [CInt] = [0, 0]
      let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
      try #require(unsafe socketpair(AF_UNIX, kind, 0, &pair) == 0)
      (ours, theirs) = (pair[0], pair[1])
    }

    func send() { #expect(unsafe write(theirs, "x", 1) == 1) }

    func close() {
      Glibc.close(ours)
      Glibc.close(theirs)
    }
  }

  /// A turn lasts until the kernel is asked again, so whoever keeps the thread makes it as long as that.
  @Loop
  @Test func saysHowLongItsTurnsTake() async {
    let turns = Turns()
    let observer = LoopTurnObserver { turns.durations.append($0) }
    let busy = Duration.milliseconds(20)
    let start = MonotonicTime.now
    while .now - start < busy {}
    await Loop.nextTurn()
    await Loop.nextTurn()
    #expect(turns.durations.contains { $0 >= busy })
    #expect(turns.durations.allSatisfy { $0 >= .zero })
    withExtendedLifetime(observer) {}
  }

  @Loop
  @Test func anObserverThatIsReleasedIsToldNothingMore() async {
    let turns = Turns()
    var observer: LoopTurnObserver? = LoopTurnObserver { turns.durations.append($0) }
    await turn()
    #expect(observer != nil && !turns.durations.isEmpty)
    observer = nil
    await turn()
    let count = turns.durations.count
    await turn()
    #expect(turns.durations.count == count)
  }

  @Loop
  private final class Turns {
    var durations: [Duration] = []
    nonisolated init() {}
  }
}
