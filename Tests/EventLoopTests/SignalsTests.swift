import EventLoop
import Glibc
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(30)), .serialized) struct SignalsTests {
  /// In the tests the loop's thread blocks every signal, so one that is sent to that thread alone waits for a reader.
  @Loop
  @Test func arriveInTheLoopInsteadOfInterruptingIt() async throws {
    let signals = try Signals([SIGUSR1, SIGUSR2])
    pthread_kill(pthread_self(), SIGUSR2)
    #expect(await signals.next() == SIGUSR2)
    let waiting = Task { @Loop in await signals.next() }
    await turn()
    pthread_kill(pthread_self(), SIGUSR1)
    #expect(await waiting.value == SIGUSR1)
    signals.close()
  }

  @Loop
  @Test func endWhenTheyAreClosed() async throws {
    let signals = try Signals([SIGUSR1])
    let waiting = Task { @Loop in await signals.next() }
    await turn()
    signals.close()
    #expect(await waiting.value == nil)
    #expect(await signals.next() == nil)
  }
}
