package import AccountEvents
package import AppleID
package import EventLoop
package import Telemetry

/// Apple's keys as they stand on their topic, for whoever verifies again what Apple signed.
///
/// The topic is read when a key is asked for that is not known, and not again for a second: the first event of a new key
/// may be there a moment before the key. As long as no read brings a key, that pause doubles, up to a minute: whoever
/// invents keys must not have the topic read all the time.
@Loop
package final class RecordedSigningKeys {
  /// Reads the topic to its end.
  package typealias Read = @Loop () async throws -> [KeyID: AppleSigningKey]

  private enum State {
    /// It may be read from that moment on.
    case idle(until: MonotonicTime)
    /// It is read at that moment.
    case planned(MonotonicTime)
    case reading
  }

  private static let shortestPause = Duration.seconds(1), longestPause = Duration.seconds(60)
  private static let pauseAfterFailure = Duration.seconds(5)

  private let agenda: Agenda
  private let logger: Logger
  private let read: Read
  private var state: State
  /// The keys, as far as the topic was read.
  package private(set) var ring = SigningKeyRing()
  private var isFailing = false
  private var pause = shortestPause

  /// No keys yet. `agenda` is the clock that pauses are measured with.
  package init(_ agenda: Agenda, logger: Logger, read: @escaping Read) {
    (self.agenda, self.logger, self.read) = (agenda, logger, read)
    state = .idle(until: agenda.now)
  }

  /// Has the topic read again, as soon as that may be. Returns after which time it is worth while to ask again; nil where
  /// no key is known at all, because the topic is empty or could not be read yet: then an unknown one says nothing.
  package func readAgain() -> Duration? {
    let now = agenda.now
    var time = now
    switch state {
    case .idle(let until) where until <= now: begin()
    case .idle(let until):
      time = until
      state = .planned(until)
      agenda.after(until - now) { [weak self] in self?.begin() }
    case .planned(let planned): time = planned
    case .reading: break
    }
    return ring.count == 0 ? nil : max(time - now, .zero) + .seconds(1)
  }

  private func begin() {
    state = .reading
    Task(executorPreference: Loop.executor) { await self.readNow() }
  }

  private func readNow() async {
    let before = ring.count
    do {
      for key in try await read().values { ring.add(key) }
      isFailing = false
      // An empty topic costs nothing to read, and the first events of all wait for the first key.
      pause = ring.count > before || ring.count == 0 ? Self.shortestPause : min(pause * 2, Self.longestPause)
      state = .idle(until: agenda.now + pause)
    } catch {
      if !isFailing {
        logger.error(
          "Apple's signing keys cannot be read: what has to be verified waits",
          ["kafka.topic": .string(Topic.signingKeys.name), "cause": .string("\(error)")])
      }
      isFailing = true
      state = .idle(until: agenda.now + Self.pauseAfterFailure)
    }
  }
}
