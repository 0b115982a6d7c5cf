import AccountServices
import Configuration
import EventLoop

/// A replay as an operator sees it: how far it is, how it ended, and what is left; with a journal, where there is one.
@Loop
final class ReplayRun {
  /// How often the journal is written.
  private static let pause = Duration.seconds(1)

  let replay: Replay
  private let path: String?
  private var journal: ReplayJournal?
  private var isInterrupted = false

  init(_ replay: Replay, journal: (path: String, content: ReplayJournal)?) {
    (self.replay, path, self.journal) = (replay, journal?.path, journal?.content)
  }

  /// Does it; `word` is what became of the records. Throws what went wrong once it has said what is left.
  func go(to destination: any ReplayDestination, _ word: String) async throws -> ExitCode {
    let bar = ProgressBar("records")
    // On a terminal the records themselves say how far it is.
    let isVisible = destination is TerminalDestination && Terminal.isRead
    var noted = MonotonicTime.now
    let result: Result<Void, any Error>
    do {
      try await Interruption.stopping(by: interrupt) {
        try note()
        try await replay.run(to: destination) { progress in
          if !isVisible { bar.note(done: progress.done, of: progress.total) }
          guard MonotonicTime.now - noted >= Self.pause else { return }
          noted = .now
          try note()
        }
      }
      result = .success(())
    } catch { result = .failure(error) }
    bar.clear()
    try note()
    let progress = replay.progress
    Terminal.complain("\(word): \(progress.replayed) of \(progress.read) that were read")
    if case .failure(let error) = result {
      sayWhatIsLeft()
      throw (error as? ReplayFailure)?.cause ?? error
    }
    // A signal that comes with the last records breaks nothing off.
    guard isInterrupted, !replay.isComplete else { return .success }
    sayWhatIsLeft()
    return .unreachable
  }

  private func interrupt() async {
    isInterrupted = true
    await replay.stop()
  }

  private func note() throws {
    journal?.left = replay.left
    if let path { try journal?.write(to: path) }
  }

  private func sayWhatIsLeft() {
    let left = replay.left.sorted { $0.key < $1.key }
    if left.isEmpty { return }
    if let path { return Terminal.complain("The same command goes on where it ended: \(path) says where.") }
    let places =
      left.map { "--from \($0.key)/\($0.value.lowerBound)" } + left.map { "--until \($0.key)/\($0.value.upperBound)" }
    Terminal.complain("What is left: \(places.joined(separator: " "))")
  }
}
