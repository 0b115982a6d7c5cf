import EventLoop

/// Questions that share a snapshot: those that are asked in one turn of the loop, or while the thread reads for others, are
/// answered together, as of one moment, which is none before they were asked. To go to the thread and back, and a
/// transaction, cost more than what most of them read.
///
/// Questions of a few rows each are answered on the loop, where the system has in memory what they read, and nobody else is
/// at work with the connection: then nobody goes to the thread. Whatever would have to be waited for, the thread waits for.
@Loop
final class SharedReads {
  /// Tells whoever has asked.
  private typealias Telling = @Sendable () -> Void
  private struct Question: Sendable {
    /// Whether it reads a few rows, however much there is in the store.
    let isBrief: Bool
    /// Asks a reader, or takes note that there is none; returns the failure, where it is one, and whom to tell. May be asked
    /// again where nobody was told.
    let ask: @Sendable (Result<SQLiteReader, AccountStoreError>) -> (failure: AccountStoreError?, tell: Telling)
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
    // Every question is answered once: it stands in `waiting` until whoever has asked is told.
    let result: Result<Value, AccountStoreError> = await unsafe withUnsafeContinuation { continuation in
      waiting.append(
        Question(isBrief: isBrief) { reader in
          let result = Result { () throws(AccountStoreError) in try question(try reader.get()) }
          var failure: AccountStoreError?
          if case .failure(let own) = result { failure = own }
          return (failure, { unsafe continuation.resume(returning: result) })
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
    return try result.get()
  }

  private func read() async {
    while !waiting.isEmpty {
      let questions = waiting
      waiting = []
      // Told on the loop, which is woken once for all of them.
      for tell in await readers.ask({ reader in Self.answer(questions, by: reader) }) { tell() }
      answerAtOnce()
    }
    isReading = false
  }

  /// Answers what is brief without waiting for anything. The first that fails, for whatever reason, is left for the thread,
  /// with all behind it.
  private func answerAtOnce() {
    guard waiting.count <= Self.mostAtOnce, waiting.allSatisfy(\.isBrief) else { return }
    let answered = readers.attempt { [waiting] reader in
      var answered: [Telling] = []
      _ = reader.withoutWaiting {
        do throws(AccountStoreError) {
          try reader.snapshot { () throws(AccountStoreError) in
            for question in waiting {
              let (failure, tell) = question.ask(.success(reader))
              if let failure { throw failure }
              answered.append(tell)
            }
          }
        } catch {
          // The thread tells whoever is left what is wrong.
        }
      }
      return answered
    }
    guard let answered else { return }
    waiting.removeFirst(answered.count)
    for tell in answered { tell() }
  }

  private nonisolated static func answer(
    _ questions: [Question], by reader: Result<SQLiteReader, AccountStoreError>
  ) -> [Telling] {
    var left = questions[...]
    var answered: [Telling] = []
    while !left.isEmpty {
      let count = left.count
      do throws(AccountStoreError) {
        let reader = try reader.get()
        try reader.snapshot { () throws(AccountStoreError) in
          while let question = left.popFirst() {
            let (failure, tell) = question.ask(.success(reader))
            answered.append(tell)
            // Whatever it has done to the snapshot: who comes behind it is answered in another one.
            if let failure { throw failure }
          }
        }
      } catch {
        // Where one was asked already, the failure is that one's.
        guard left.count == count else { continue }
        for question in left { answered.append(question.ask(.failure(error)).tell) }
        break
      }
    }
    return answered
  }
}
