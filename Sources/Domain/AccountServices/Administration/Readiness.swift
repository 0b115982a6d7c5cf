package import EventLoop
package import Telemetry

/// Whether a service can do its work now, and if not, which part keeps it from that.
@Loop
package final class Readiness {
  /// A part that must be ready.
  package enum Part: String, CaseIterable, Sendable {
    /// Apple's signing keys are known.
    case keys
    /// The log takes records.
    case kafka
    /// The consumer has its share of its group's partitions, and reads them.
    case group
    /// The account store can be read and written.
    case store
    /// The audit log is written by this process, and checkpoints are signed.
    case log
    /// The service takes requests: it has started, and does not end.
    case service
  }

  /// How a part is.
  package enum State: Sendable, Equatable, CustomStringConvertible {
    /// As it should be.
    case ready
    /// It fails, and something else does its work: the service is ready.
    case replaced(cause: String)
    /// It fails, and the service with it.
    case notReady(cause: String)

    /// As `/readyz` and the log show it.
    package var description: String {
      switch self {
      case .ready: "ready"
      case .replaced(let cause): "replaced: \(cause)"
      case .notReady(let cause): "not ready: \(cause)"
      }
    }

    var isReady: Bool { if case .notReady = self { false } else { true } }
  }

  /// Whether `watch` changes nothing any more: the service ends.
  package var isFrozen = false
  private let parts: [Part]
  private var states: [Part: State]

  /// These parts make up the service; none is ready yet.
  package init(_ parts: [Part]) {
    self.parts = parts
    states = Dictionary(uniqueKeysWithValues: parts.map { ($0, .notReady(cause: "not checked yet")) })
  }

  /// How a part is.
  package subscript(_ part: Part) -> State {
    get { states[part, default: .ready] }
    set { states[part] = newValue }
  }

  /// Whether the service can do its work.
  package var isReady: Bool { states.values.allSatisfy(\.isReady) }

  /// Says from now on that the service ends, and returns when it is to take nothing new any more. Where there is a time as
  /// a lame duck, all is served for that long before: so whoever asks `/readyz` sends nobody any more by the time that nobody
  /// listens. Said again, it waits for nothing; nor does a task that is cancelled.
  package func end(after lameDuck: Duration, _ logger: Logger) async {
    let isFirst = !isFrozen
    isFrozen = true
    self[.service] = .notReady(cause: "draining")
    guard isFirst, lameDuck > .zero else { return }
    logger.info("about to drain: all is served until then", ["drain.in": .describing(lameDuck)])
    do {
      try await Loop.sleep(for: lameDuck)
    } catch {
      logger.debug("there was no time to wait")  // the task was cancelled
    }
  }

  /// A line for each part, as `/readyz` shows it.
  package var report: String { parts.map { "\($0.rawValue): \(self[$0])\n" }.joined() }
}
