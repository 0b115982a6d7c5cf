import EventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(30))) struct BlockingThreadTests {
  @Loop
  @Test func runsWorkInTheOrderInWhichItWasGiven() async {
    let thread = BlockingThread(named: "test-blocking")
    let journal = Journal()
    let tasks = (0..<100).map { index in
      Task { @Loop in await thread.run { journal.entries.withLock { $0.append(index) } } }
    }
    for task in tasks { await task.value }
    #expect(journal.entries.withLock { $0 } == Array(0..<100))
    thread.close()
  }

  @Test func isAThreadOfItsOwn() async {
    let thread = BlockingThread(named: "test-blocking")
    let first = await thread.run { UInt(pthread_self()) }
    let second = await thread.run { UInt(pthread_self()) }
    #expect(first == second)
    #expect(first != UInt(pthread_self()))
    thread.close()
  }

  @Test func passesOnWhatTheWorkThrows() async {
    let thread = BlockingThread(named: "test-blocking")
    await #expect(throws: SystemError(code: ENOENT)) { try await thread.run { throw SystemError(code: ENOENT) } }
    thread.close()
    thread.close()
  }

  @Loop
  @Test func doesWhatWasGivenBeforeItWasClosed() async {
    let thread = BlockingThread(named: "test-blocking")
    let tasks = (0..<10).map { index in Task { @Loop in await thread.run { index } } }
    await turn()
    thread.close()
    for (index, task) in tasks.enumerated() { #expect(await task.value == index) }
  }

  @Loop
  @Test func theLoopTurnsWhileItsWorkBlocks() async {
    let thread = BlockingThread(named: "test-blocking")
    let journal = Journal()
    let blocked = Task { @Loop in
      await thread.run { while journal.entries.withLock({ $0.isEmpty }) { sched_yield() } }
    }
    await turn()
    journal.entries.withLock { $0.append(1) }
    await blocked.value
    thread.close()
  }

  private final class Journal: Sendable {
    let entries = Mutex<[Int]>([])
  }
}
