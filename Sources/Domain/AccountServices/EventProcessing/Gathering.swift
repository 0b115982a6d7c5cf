import EventLoop

/// Gathers questions of those who wait, and has them answered together: what comes while some are being answered goes
/// together into the next.
@Loop
final class Gathering<Question, Answer: Sendable> {
  private let batches: Batches<(question: Question, asker: CheckedContinuation<Answer, Never>)>

  /// Has `most` questions answered at once at most: `answer` returns as many answers, in the order of the questions.
  init(upTo most: Int, _ answer: @escaping @Loop ([Question]) async -> [Answer]) {
    batches = Batches(upTo: most) { waiting in
      let answers = await answer(waiting.map(\.question))
      precondition(answers.count == waiting.count, "\(answers.count) answers to \(waiting.count) questions")
      for (one, answer) in zip(waiting, answers) { one.asker.resume(returning: answer) }
    }
  }

  /// The same where all of them can fail together.
  convenience init<Value: Sendable, Failure: Error>(
    upTo most: Int, _ answer: @escaping @Loop ([Question]) async throws(Failure) -> [Value]
  ) where Answer == Result<Value, Failure> {
    self.init(upTo: most) { questions in
      do throws(Failure) {
        return try await answer(questions).map { .success($0) }
      } catch {
        return questions.map { _ in .failure(error) }
      }
    }
  }

  /// Waits for the answer.
  func ask(_ question: Question) async -> Answer {
    await withCheckedContinuation { batches.add((question, $0)) }
  }
}
