import EventLoop

/// Questions that share a snapshot: those that are asked in one turn of the loop, or while the thread reads for others, are
/// answered together, as of one moment, which is none before they were asked. To go to the thread and back, and a
/// transaction, cost more than what most of them read.
///
/// Questions of a few rows each are answered on the loop, where the system has in memory what they read, and nobody else is
/// at work with the connection: then nobody goes to the thread. Whatever would have to be waited for, the thread waits for.
@Loop
final class SharedReads {
  private struct Question: Sendable {
    /// Whether it reads a few rows, however much there is in the store.
    let isBrief: Bool
    /// Asks a reader, or takes note that there is none, and tells whoever has asked; returns the failure, where it is one.
    /// Where `isLast` is false, nobody is told of a failure: the question will be asked again.
    let ask: @Sendable (_ reader: Result<SQLiteReader, AccountStoreError>, _ isLast: Bool) -> AccountStoreError?
  }

  /// Where more ask in one turn, the loop has enough to do, and what it costs to go to the thread is little for each.
  private static let mostAtOnce = 32

  private let readers: SQLiteThread<SQLiteReader>
  private var waiting: [Question] = []
  private var isReading = false

  /// For questions to that thread.
  init(_ readers: SQLiteThread<SQLiteReader>) { self.readers = readers }

  /// Asks within a snapshot. A question is brief where it reads a few rows, however much there is in the store.
  func run<Value: Sendable>(
    isBrief: Bool = false, _ question: @escaping @Sendable (SQLiteReader) throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    try await unsafe withUnsafeContinuation { unsafe ask(isBrief: isBrief, question, $0) }.get()
  }

  /// Asks as `run` does, and resumes the continuation with the answer: for callers to whom one more async call matters.
  func ask<Value: Sendable>(
    isBrief: Bool, _ question: @escaping @Sendable (SQLiteReader) throws(AccountStoreError) -> Value,
    _ continuation: UnsafeContinuation<Result<Value, AccountStoreError>, Never>
  ) {
    // Every continuation is resumed once: its question stands in `waiting` until then, or the thread has taken it.
    waiting.append(
      Question(isBrief: isBrief) { reader, isLast in
        let result = Result { () throws(AccountStoreError) in try question(try reader.get()) }
        var failure: AccountStoreError?
        if case .failure(let own) = result { failure = own }
        if failure == nil || isLast { unsafe continuation.resume(returning: result) }
        return failure
      })
    guard !isReading else { return }
    isReading = true
    Loop.afterTurn { [self] in
      answerAtOnce()
      if waiting.isEmpty {
        isReading = false
      } else {
        Task(executorPreference: Loop.executor) { await self.read() }
      }
    }
  }

  private func read() async {
    while !waiting.isEmpty {
      let questions = waiting
      waiting = []
      await readers.ask { reader in Self.answer(questions, by: reader) }
      answerAtOnce()
    }
    isReading = false
  }

  /// Answers what is brief without waiting for anything. The first that fails, for whatever reason, is left for the thread,
  /// with all behind it.
  private func answerAtOnce() {
    guard waiting.count <= Self.mostAtOnce, waiting.allSatisfy(\.isBrief) else { return }
    let answered = readers.attempt { [waiting] reader in
      var answered = 0
      _ = reader.withoutWaiting {
        do throws(AccountStoreError) {
          try reader.snapshot { () throws(AccountStoreError) in
            for question in waiting {
              if let failure = question.ask(.success(reader), false) { throw failure }
              answered += 1
            }
          }
        } catch {
          // The thread tells whoever is left what is wrong.
        }
      }
      return answered
    }
    waiting.removeFirst(answered ?? 0)
  }

  private nonisolated static func answer(
    _ questions: [Question], by reader: Result<SQLiteReader, AccountStoreError>
  ) {
    var left = questions[...]
    while !left.isEmpty {
      let count = left.count
      do throws(AccountStoreError) {
        let reader = try reader.get()
        try reader.snapshot { () throws(AccountStoreError) in
          while let question = left.popFirst() {
            // Whatever it has done to the snapshot: who comes behind it is answered in another one.
            if let failure = question.ask(.success(reader), true) { throw failure }
          }
        }
      } catch {
        // Where one was asked already, the failure is that one's.
        guard left.count == count else { continue }
        for question in left { _ = question.ask(.failure(error), true) }
        break
      }
    }
  }
}
