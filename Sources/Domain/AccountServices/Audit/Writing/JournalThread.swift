import EventLoop
import Synchronization

/// A thread, and the journal that is used on it while it is open.
package final class JournalThread: Sendable {
  private let thread = BlockingThread(named: "audit-log")
  private let journal = Mutex<AuditJournal?>(nil)

  /// Why a call fails that comes after the journal was closed.
  package struct Closed: Error, CustomStringConvertible {
    /// What happened.
    package let description = "the log was closed"
  }

  /// A thread without a journal.
  package init() {}

  /// Opens the journal in the directory, in which the log has begun; one that was open is closed before.
  package func open(in directory: String, origin: String) async throws {
    try await thread.run { [self] in
      try journal.withLock { journal in
        // The lock of the log goes with the last reference to it.
        journal = nil
        journal = try AuditJournal(in: directory, origin: origin)
      }
    }
  }

  /// Runs `work` with the journal. What is given first is done first.
  package func run<Value: Sendable>(
    _ work: @escaping @Sendable (AuditJournal) throws -> Value
  ) async throws -> Value {
    try await thread.run { [self] in
      try journal.withLock { journal in
        guard let journal else { throw Closed() }
        return try work(journal)
      }
    }
  }

  /// Shows readers what follows from a cosignature: all of it at once, behind what followed from those before it.
  package func publish(_ step: WitnessedCheckpoints.Step) async throws { try await run { try $0.publish(step) } }

  /// Closes the journal: another process may have it then.
  package func close() async { await thread.run { [self] in journal.withLock { $0 = nil } } }

  deinit { thread.close() }
}
