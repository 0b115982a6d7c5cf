package import AccountEvents
package import AccountStore
package import EventLoop
package import Telemetry

/// Brings erasures to their end: asks each target of a plan in its order, writes down what it did, and goes on later
/// where one has failed. What is done is not done again.
@Loop
package final class Erasures {
  /// A place to erase from, under the name that the operator gave it.
  package typealias NamedTarget = (name: String, target: any ErasureTarget)

  /// When a service that is at work is asked again, unless it says so: at first soon, then more and more seldom.
  private static let progressPace = RetryPace(first: .seconds(10), longest: .seconds(600))
  /// How many services at work are remembered before those that may be asked again are forgotten.
  private static let mostAtWork = 4096

  private let targets: [GuardedTarget]
  private let store: any AccountStore
  private let metrics: ErasureMetrics
  private let logger: Logger
  private let now: @Sendable () -> Timestamp
  private let clock: @Loop () -> MonotonicTime
  /// When targets that are at work may be asked again. Who begins anew asks at once.
  private var atWork: [OpenErasure.Place: MonotonicTime] = [:]
  /// What erasures that go on side by side ask of the store, and record there, in one transaction: it costs almost the
  /// same however many they are.
  private let standings: Questions<EventReference, EventStanding, AccountStoreError>
  private let known: Questions<EventID, [ErasureStep], AccountStoreError>
  private let records: Questions<(step: ErasureStep, event: EventReference), Void, AccountStoreError>

  /// Erasures from these targets. `concurrency` is how many go on at once: a target that takes long has a quarter of them.
  package init(
    _ targets: [NamedTarget], store: any AccountStore, concurrency: Int, registry: MetricsRegistry, logger: Logger,
    now: @escaping @Sendable () -> Timestamp, clock: @escaping @Loop () -> MonotonicTime,
    random: @escaping @Sendable () -> Double
  ) {
    (self.store, self.logger, self.now, self.clock) = (store, logger, now, clock)
    self.targets = targets.map { name, target in
      GuardedTarget(
        name, target, share: max(1, concurrency / 4), clock: clock, random: random, registry: registry, logger: logger)
    }
    metrics = ErasureMetrics(registry, targets: targets.map(\.name))
    standings = Questions(upTo: 256) { events throws(AccountStoreError) in
      try await store.standings(of: events, for: .dataEraser)
    }
    known = Questions(upTo: 256) { events throws(AccountStoreError) in try await store.erasureSteps(of: events) }
    records = Questions(upTo: 256) { steps throws(AccountStoreError) in
      try await store.record(steps)
      return steps.map { _ in }
    }
  }

  /// Whether anything was begun for the event, be it at its end or not.
  package func wasBegun(_ event: EventID) async throws -> Bool { try await !known.ask(event).isEmpty }

  /// What became of the targets of an erasure that is done.
  package struct Completion: Sendable {
    /// The steps, in their order.
    package internal(set) var steps: [ErasureStep] = []
    /// Those among them that are still to be recorded: the end of the last target, which is written with what follows from
    /// it. Where that does not come to it, the target was begun, and is asked again.
    package internal(set) var unrecorded: [ErasureStep] = []
  }

  /// Goes on with an erasure from the targets named in `plan`, and returns what became of each, in their order.
  ///
  /// A target that fails, is paused or is at work does not keep the others from erasing. What an operator has discarded is
  /// not asked for again. A target that is not in the plan any more and has begun stays open until an operator decides.
  /// Once all have been asked, throws `Incomplete` where some have failed, or else `Waiting` where some are not done; and
  /// what the store throws.
  package func proceed(
    with order: ErasureOrder, plan: [String], event: EventReference, waits: Int = 0
  ) async throws -> Completion {
    let known = try await known.ask(order.event)
    var completion = Completion()
    var failures: [String] = []
    var waiting = Waiting()
    let planned = targets.filter { plan.contains($0.name) }
    let left = known.filter { step in !planned.contains { $0.name == step.target } }
    for target in planned {
      let earlier = known.first { $0.target == target.name }
      if let earlier, !earlier.state.isOpen {
        completion.steps.append(earlier)
        continue
      }
      let place = OpenErasure.Place(event: order.event, target: target.name)
      if let earlier, earlier.isInProgress, let due = atWork[place], due > clock() {
        waiting.add(inProgress: target.name, for: due - clock())
        continue
      }
      // A target may take minutes. Who has signed in meanwhile is not the one that the event speaks of.
      if case .superseded(let cause) = try await standings.ask(event) {
        throw Superseded(cause: cause)
      }
      var before = earlier?.before
      do {
        let progress = try await target.run {
          try await erase(target, order, event, wasBegun: earlier?.wasBegun ?? false, &before)
        }
        switch progress {
        case .done(let step):
          atWork[place] = nil
          completion.steps.append(step)
          let isLast = target === planned.last && !left.contains(where: \.state.isOpen)
          if isLast, failures.isEmpty, waiting.targets.isEmpty {
            completion.unrecorded.append(step)
          } else {
            try await record(step, of: event)
          }
          metrics.erased[target.name]?.increment()
        case .inProgress(let retryAfter):
          let pause = retryAfter ?? Self.progressPace.pause(after: waits + 1, random: 1)
          note(place, atWorkFor: pause)
          waiting.add(inProgress: target.name, for: pause)
        }
      } catch let failure as ErasureFailure where failure.code == .paused {
        waiting.add(paused: target.name, for: failure.retryAfter ?? .zero)
        if earlier == nil { try await recordFailure(ErasureStep.paused, of: target.name, before: nil, event) }
      } catch let failure as ErasureFailure {
        // This process ends: that says nothing of the target, which is asked again.
        if Task.isCancelled { throw failure }
        failures.append("\(target.name): \(failure.code.rawValue)")
        metrics.count(failure.code, of: target.name)
        logger.warning(
          "an erasure target has failed",
          [
            "erasure.target": .string(target.name), "event.id": .string(order.event.text),
            "cause": .describing(failure),
          ])
        try await recordFailure(failure.code.rawValue, of: target.name, before: before, event)
      }
    }
    for step in left {
      guard step.state.isOpen else {
        completion.steps.append(step)
        continue
      }
      failures.append("\(step.target): \(Self.undeclared)")
      if step.state != .failed || step.detail != Self.undeclared {
        try await recordFailure(Self.undeclared, of: step.target, before: step.before, event)
      }
    }
    if !failures.isEmpty { throw Incomplete(failures: failures + waiting.targets) }
    if !waiting.targets.isEmpty { throw waiting }
    return completion
  }

  /// The detail of a step that was begun when the policy named its target.
  private static let undeclared = "undeclared"

  private func note(_ place: OpenErasure.Place, atWorkFor pause: Duration) {
    let now = clock()
    if atWork.count >= Self.mostAtWork { atWork = atWork.filter { $0.value > now } }
    atWork[place] = now + pause
  }

  /// An erasure goes on although the token revoker has not ended the account's tokens.
  package func noteUnrevoked(_ event: EventID, waited: Duration) {
    metrics.unrevoked.increment()
    logger.warning(
      "an erasure does not wait for the token revoker any longer",
      ["event.id": .string(event.text), "erasure.waited": .describing(waited)])
  }

  /// Gives up an erasure that something has made void, and returns the targets that may still hold what was to be erased:
  /// they stay open in the store, those too that it has not come to. None where nobody was asked, or all is done.
  package func leave(_ event: EventReference, plan: [String]) async throws -> [String] {
    let known = try await store.erasureSteps(of: event.id)
    guard known.contains(where: \.wasAsked) else { return [] }
    var left = known.filter(\.state.isOpen).map(\.target)
    for target in targets
    where plan.contains(target.name) && !(target.target is Retention)
      && !known.contains(where: { $0.target == target.name })
    {
      try await recordFailure("superseded", of: target.name, before: nil, event)
      left.append(target.name)
    }
    return left
  }

  /// Gives up an erasure that a weightier event has made void, and returns the targets that may still hold what was to be
  /// erased: no weightier erasure has brought them to their end, as where the policy did not name them any more. They
  /// stay open in the store; the others are closed.
  package func yield(_ event: EventReference) async throws -> [String] {
    let open = try await known.ask(event.id).filter(\.state.isOpen).map(\.target)
    if open.isEmpty { return [] }
    let left = try await store.uncoveredTargets(of: [event])[0]
    // By their names: what is begun meanwhile, by another process that has the event, was not judged.
    for target in open where !left.contains(target) {
      _ = try await store.discardErasure(
        of: event.id, account: event.account, target: target, note: Self.covered, at: now())
    }
    return left
  }

  /// The detail of a step of a void event at a target that another erasure has come to its end at.
  private static let covered = "a weightier erasure has come to its end there"

  /// Something has made the event void while it was being worked on: what is not erased stays.
  package struct Superseded: Error {
    /// What it was.
    package let cause: Supersession
  }

  /// Some targets have failed; the others are done, or are waited for.
  package struct Incomplete: Error {
    /// `target: cause` of each.
    package let failures: [String]
  }

  /// Some targets are at work or paused; the others are done, and none has failed.
  package struct Waiting: Error {
    /// `target: cause` of each.
    package private(set) var targets: [String] = []
    /// Whether one of them was not asked because it does not answer.
    package private(set) var isPaused = false
    /// When the first of them may be asked again.
    package private(set) var pause: Duration = .seconds(3600)

    fileprivate mutating func add(inProgress target: String, for pause: Duration) {
      targets.append("\(target): \(ErasureStep.inProgress)")
      self.pause = min(self.pause, pause)
    }

    fileprivate mutating func add(paused target: String, for pause: Duration) {
      targets.append("\(target): \(ErasureFailure.Code.paused.rawValue)")
      isPaused = true
      self.pause = min(self.pause, pause)
    }
  }

  private enum Progress: Sendable {
    case done(ErasureStep)
    case inProgress(retryAfter: Duration?)
  }

  private func record(_ step: ErasureStep, of event: EventReference) async throws(AccountStoreError) {
    try await records.ask((step, event))
  }

  private func recordFailure(
    _ detail: String, of target: String, before: Int?, _ event: EventReference
  ) async throws(AccountStoreError) {
    try await record(
      ErasureStep(
        target: target, state: .failed, before: before, affected: nil, after: nil, detail: detail, time: now()),
      of: event)
  }

  private func erase(
    _ target: GuardedTarget, _ order: ErasureOrder, _ event: EventReference, wasBegun: Bool, _ before: inout Int?
  ) async throws -> Progress {
    // Counted once: an attempt that was cut short may have erased already.
    if before == nil { before = try await target.target.count(order) }
    try await record(begun(target, before, ""), of: event)
    let result = try await target.target.erase(order)
    let state: ErasureStep.State
    switch result.state {
    case .erased: state = .erased
    case .retained: state = .retained
    case .inProgress(let retryAfter):
      try await record(begun(target, before, ErasureStep.inProgress), of: event)
      return .inProgress(retryAfter: retryAfter)
    }
    // Nobody knows how many an earlier attempt has erased that was cut short, or whose answer did not come.
    let affected = wasBegun ? nil : result.affected
    return .done(
      ErasureStep(
        target: target.name, state: state, before: before, affected: affected, after: result.found,
        detail: result.detail, time: now()))
  }

  private func begun(_ target: GuardedTarget, _ before: Int?, _ detail: String) -> ErasureStep {
    ErasureStep(
      target: target.name, state: .begun, before: before, affected: nil, after: nil, detail: detail, time: now())
  }
}

extension ErasureStep {
  /// The detail of a step that has failed without its target having been asked: it does not answer of late.
  fileprivate static let paused = ErasureFailure.Code.paused.rawValue

  /// Whether the target is at work, by its own words.
  fileprivate var isInProgress: Bool { state == .begun && detail == Self.inProgress }

  /// Whether its target may hold less than before.
  fileprivate var wasAsked: Bool { state != .retained && !(state == .failed && detail == Self.paused) }

  /// Whether the target may have erased something: it was asked, and its answer did not come or was not the end. Of a
  /// service at work the last answer counts all.
  fileprivate var wasBegun: Bool { state.isOpen && !isInProgress && detail != Self.paused && detail != "superseded" }
}
