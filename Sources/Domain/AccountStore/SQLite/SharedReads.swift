import EventLoop

/// Questions that share a snapshot: those that are asked in one turn of the loop, or while the thread reads for others, are
/// answered together, as of one moment, which is none before they were asked. To go to the thread and back, and a
/// transaction, cost more than what most of them read.
@Loop
final class SharedReads {
  /// Tells whoever has asked.
  private typealias Telling = @Sendable () -> Void
  /// Asks a reader, or takes note that there is none; returns the failure, where it is one, and whom to tell.
  private typealias Question =
    @Sendable (Result<SQLiteReader, AccountStoreError>) -> (failure: AccountStoreError?, tell: Telling)

  private let readers: SQLiteThread<SQLiteReader>
  private var waiting: [Question] = []
  private var isReading = false

  /// For questions to that thread.
  init(_ readers: SQLiteThread<SQLiteReader>) { self.readers = readers }

  /// Asks within a snapshot.
  func run<Value: Sendable>(
    _ question: @escaping @Sendable (SQLiteReader) throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    let result: Result<Value, AccountStoreError> = await withCheckedContinuation { continuation in
      waiting.append { reader in
        let result = Result { () throws(AccountStoreError) in try question(try reader.get()) }
        var failure: AccountStoreError?
        if case .failure(let own) = result { failure = own }
        return (failure, { continuation.resume(returning: result) })
      }
      guard !isReading else { return }
      isReading = true
      Task(executorPreference: Loop.executor) { await self.read() }
    }
    return try result.get()
  }

  private func read() async {
    while !waiting.isEmpty {
      let questions = waiting
      waiting = []
      // Told on the loop, which is woken once for all of them.
      for tell in await readers.ask({ reader in Self.answer(questions, by: reader) }) { tell() }
    }
    isReading = false
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
            let (failure, tell) = question(.success(reader))
            answered.append(tell)
            // Whatever it has done to the snapshot: who comes behind it is answered in another one.
            if let failure { throw failure }
          }
        }
      } catch {
        // Where one was asked already, the failure is that one's.
        guard left.count == count else { continue }
        for question in left { answered.append(question(.failure(error)).tell) }
        break
      }
    }
    return answered
  }
}
