import EventLoop

/// Gathers what is to be done and does it in batches: what comes while as many are under way as may be goes together into
/// the next.
@Loop
final class Batches<Element> {
  private let most: Int
  private let atOnce: Int
  private let work: @Loop ([Element]) async -> Void
  private var waiting = FIFO<Element>()
  /// Whether a batch begins with the next turn of the loop: with all that has come until then.
  private var isBeginning = false
  /// How many are under way, or begin.
  private(set) var underWay = 0

  /// Does `work` with `most` elements at once at most, in their order; `atOnce` is how many batches are under way together.
  init(upTo most: Int, atOnce: Int = 1, _ work: @escaping @Loop ([Element]) async -> Void) {
    (self.most, self.atOnce, self.work) = (most, atOnce, work)
  }

  /// Whether nothing waits and nothing is under way.
  var isIdle: Bool { underWay == 0 }

  /// Puts an element behind all others.
  func add(_ element: Element) {
    waiting.append(element)
    begin()
  }

  private func begin() {
    if isBeginning || underWay == atOnce || waiting.isEmpty { return }
    isBeginning = true
    underWay += 1
    Task(executorPreference: Loop.executor) { await self.workOff() }
  }

  private func workOff() async {
    isBeginning = false
    while !waiting.isEmpty {
      let batch = waiting.popFirst(upTo: most)
      begin()
      await work(batch)
    }
    underWay -= 1
  }
}

/// Gathers questions of those who wait, and has them answered together.
@Loop
final class Questions<Question, Answer: Sendable, Failure: Error> {
  private typealias Asked = (question: Question, asker: CheckedContinuation<Result<Answer, Failure>, Never>)
  private let batches: Batches<Asked>

  /// Has `most` answered at once at most: `answer` returns as many answers, in the order of the questions.
  init(upTo most: Int, _ answer: @escaping @Loop ([Question]) async -> [Result<Answer, Failure>]) {
    batches = Batches(upTo: most) { asked in
      let answers = await answer(asked.map(\.question))
      precondition(answers.count == asked.count, "\(answers.count) answers to \(asked.count) questions")
      for (one, answer) in zip(asked, answers) { one.asker.resume(returning: answer) }
    }
  }

  /// The same where all of them can fail together.
  convenience init(upTo most: Int, _ answer: @escaping @Loop ([Question]) async throws(Failure) -> [Answer]) {
    self.init(upTo: most) { questions in
      do throws(Failure) {
        return try await answer(questions).map { .success($0) }
      } catch {
        return questions.map { _ in .failure(error) }
      }
    }
  }

  /// Waits for the answer.
  func ask(_ question: Question) async throws(Failure) -> Answer {
    try await withCheckedContinuation { batches.add((question, $0)) }.get()
  }
}
