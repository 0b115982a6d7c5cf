package import AccountEvents
package import EventLoop
package import Telemetry

/// Keeps Apple's keys at hand: fetched ahead of time, kept over restarts, looked up anew where one is unknown.
///
/// A set takes the place of the last one only if all of it can be believed; until then, and for as long as Apple cannot
/// be reached, the last one serves, whatever its age: `age` is what to alarm on. One fetch is on its way at a time, for
/// all who wait, and unknown keys cause one only after a pause: a flood of invented names never becomes one of fetches.
@Loop
package final class AppleKeys {
  /// How many lookups may wait for a fetch; those beyond get `.unavailable` at once.
  static let maximumQuestions = 256

  /// The set in use, for a verifier that does not wait: `AppleKeySet.none` until there is one.
  package private(set) var current = AppleKeySet.none

  /// Somebody who waits for a key, and is answered once.
  @Loop
  private final class Question {
    nonisolated let id: KeyID
    private var waiter: CheckedContinuation<KeyLookup, Never>?

    init(id: KeyID, waiter: CheckedContinuation<KeyLookup, Never>) { (self.id, self.waiter) = (id, waiter) }

    func answer(_ lookup: KeyLookup) {
      waiter?.resume(returning: lookup)
      waiter = nil
    }
  }

  /// What a cancelled task leaves by.
  @Loop
  private final class Place {
    var question: Question?
    nonisolated init() {}
  }

  private let source: any AppleKeysSource
  private let cache: AppleKeysCache?
  private let alarm: any AlarmClock
  private let now: @Sendable () -> Timestamp
  private let jitter: @Sendable () -> Double
  private let metrics: AppleKeysMetrics
  private let logger: Logger
  private var plan: FetchPlan
  private var fetchedAt: Timestamp?
  private var isRunning = false
  /// Who asked since the last fetch began; the next one is made for them.
  private var questions: [Question] = []
  private var bell: CheckedContinuation<Void, Never>?
  /// What the cache is to keep next, and who gives it that.
  private var unkept: (answer: [UInt8], set: AppleKeySet, fetchedAt: Timestamp)?
  private var keeping: Task<Void, Never>?
  /// The names of keys that were passed over, and of which that was said.
  private var foreign: Set<KeyID> = []
  /// Told what Apple's clock said, at each answer that says it.
  package var whenDated: (@Loop (Timestamp) -> Void)?

  /// Keys that are not there yet: `restore` and `run` get them.
  ///
  /// - Parameters:
  ///   - cache: The file that keeps the set over a restart; nil where none shall.
  ///   - alarm: An alarm clock of its own.
  ///   - now: What the system's clock says.
  ///   - jitter: A random number from 0 up to 1, a new one each time.
  package init(
    from source: any AppleKeysSource, cache: AppleKeysCache?, pace: FetchPace, alarm: any AlarmClock,
    now: @escaping @Sendable () -> Timestamp, jitter: @escaping @Sendable () -> Double, metrics: AppleKeysMetrics,
    logger: Logger
  ) {
    (self.source, self.cache, self.alarm, self.now, self.jitter) = (source, cache, alarm, now, jitter)
    (self.metrics, self.logger) = (metrics, logger)
    plan = FetchPlan(pace, at: alarm.now)
  }

  /// How long ago Apple gave the set in use; nil without one.
  package var age: Duration? { fetchedAt.map { max(.zero, now() - $0) } }

  /// How many lookups wait for the next fetch to begin, or for the one on its way without being its cause.
  package var waiting: Int { questions.count }

  /// Takes up the set that the last run kept. What cannot be used is reported and ignored.
  package func restore() async {
    guard let cache else { return }
    do {
      guard let kept = try await cache.load(), fetchedAt == nil else { return }
      use(kept.set, fetchedAt: kept.fetchedAt)
      logger.info(
        "Apple's keys were read from the cache", ["keys.ids": .string(ids), "keys.age": .seconds(age ?? .zero)])
    } catch {
      report("Apple's keys could not be read from the cache", error)
    }
  }

  /// Fetches the keys at once and then ahead of time, until the task is cancelled. Lookups are answered meanwhile.
  package func run() async {
    isRunning = true
    await withTaskCancellationHandler {
      while !Task.isCancelled {
        await untilDue()
        if !Task.isCancelled { await refresh() }
      }
    } onCancel: {
      Task { @Loop in ring() }
    }
    isRunning = false
    for question in takeQuestions() { question.answer(.unavailable) }
    await keeping?.value
  }

  /// Finds out whether Apple has a key that is not in `current`. Waits for a fetch where one may be made, unless the task
  /// is cancelled.
  package func lookUp(_ id: KeyID) async -> KeyLookup {
    if let answer = answerAtOnce(on: id) { return answer }
    let place = Place()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        let question = Question(id: id, waiter: waiter)
        if Task.isCancelled { return question.answer(.unavailable) }
        place.question = question
        ask(question)
      }
    } onCancel: {
      Task { @Loop in leave(place) }
    }
  }

  private func leave(_ place: Place) {
    questions.removeAll { $0 === place.question }
    place.question?.answer(.unavailable)
  }

  private func ask(_ question: Question) {
    if let answer = answerAtOnce(on: question.id) { return question.answer(answer) }
    questions.append(question)
    ring()
  }

  /// What can be said of a key without a fetch; nil where `lookUp` has to wait for one.
  package func answerAtOnce(on id: KeyID) -> KeyLookup? {
    if current[id] != nil { return .found(current) }
    return switch plan.step(for: id, at: alarm.now) {
    case .absent: absence(of: id)
    case .wait where isRunning && questions.count < Self.maximumQuestions: nil
    case .wait, .notBefore: .unavailable
    }
  }

  /// Waits until a fetch is due, or somebody asks for one that may be made.
  private func untilDue() async {
    await withCheckedContinuation { waiter in
      if Task.isCancelled || !questions.isEmpty || plan.due <= alarm.now { return waiter.resume() }
      bell = waiter
      alarm.set(plan.due) { [weak self] in self?.ring() }
    }
  }

  private func ring() {
    bell?.resume()
    bell = nil
  }

  private func refresh() async {
    let asked = takeQuestions()
    plan.began(for: asked.lazy.map(\.id))
    metrics.fetches.increment()
    let answer: AppleKeysAnswer
    do {
      answer = try await source.fetch()
      if let date = answer.date { whenDated?(date) }
      try take(answer.body)
      for question in asked {
        question.answer(current[question.id] == nil ? absence(of: question.id) : .found(current))
      }
    } catch {
      plan.failed(at: alarm.now, jitter: jitter())
      settle(asked + takeQuestions(), otherwise: .unavailable)
      if !Task.isCancelled { report("Apple's keys could not be fetched", error) }
      return
    }
    // Those who asked while it was on its way: what it did not bring, Apple may have by now.
    settle(takeQuestions(), otherwise: .unavailable)
    keep(answer.body)
  }

  /// Puts the set that Apple answered in the place of the one in use.
  private func take(_ answer: [UInt8]) throws(AppleKeysFailure) {
    let set: AppleKeySet
    do {
      set = try unsafe AppleKeySet(reading: answer.span.bytes, at: now(), after: current)
    } catch {
      throw AppleKeysFailure(.unfitSet, error.description)
    }
    let isNew = Set(set.keyIDs) != Set(current.keyIDs)
    use(set, fetchedAt: now())
    plan.succeeded(with: set, at: alarm.now, jitter: jitter())
    if isNew { logger.notice("Apple's keys changed", ["keys.ids": .string(ids)]) }
    for id in set.foreignIDs where foreign.count < AppleKeySet.maximumCount && foreign.insert(id).inserted {
      logger.notice("a key of Apple's is not for RS256 signatures, and is passed over", ["keys.id": .string(id.text)])
    }
  }

  private func use(_ set: AppleKeySet, fetchedAt time: Timestamp) {
    current = set
    fetchedAt = time
    metrics.inUse(set, fetchedAt: time)
  }

  /// Has the cache keep the set in use, or the one that is in use by the time that the disk is done with an older one. A disk
  /// that hangs keeps nobody from Apple's next answer.
  private func keep(_ answer: [UInt8]) {
    guard let cache, let fetchedAt else { return }
    unkept = (answer, current, fetchedAt)
    if keeping != nil { return }
    keeping = Task(executorPreference: Loop.executor) { await self.keepAll(in: cache) }
  }

  private func keepAll(in cache: AppleKeysCache) async {
    while let next = takeUnkept() {
      do {
        try await cache.store(next.answer, of: next.set, fetchedAt: next.fetchedAt)
      } catch {
        report("Apple's keys could not be written into the cache", error)
      }
    }
    keeping = nil
  }

  private func takeUnkept() -> (answer: [UInt8], set: AppleKeySet, fetchedAt: Timestamp)? {
    defer { unkept = nil }
    return unkept
  }

  /// What is said of a key that the set does not have. One that was passed over is not absent: Apple has it, and what it
  /// signed may be Apple's, though we cannot tell.
  private func absence(of id: KeyID) -> KeyLookup { current.foreignIDs.contains(id) ? .unavailable : .absent }

  private func settle(_ questions: [Question], otherwise: KeyLookup) {
    for question in questions {
      question.answer(current[question.id] == nil ? otherwise : .found(current))
    }
  }

  private func takeQuestions() -> [Question] {
    defer { questions = [] }
    return questions
  }

  private var ids: String { current.keyIDs.map(\.text).joined(separator: " ") }

  private func report(_ message: StaticString, _ failure: AppleKeysFailure) {
    metrics.failures[failure.reason].increment()
    logger.warning(
      message, ["keys.reason": .string(failure.reason.rawValue), "keys.detail": .string(failure.detail)])
  }
}
