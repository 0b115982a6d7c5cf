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

  private let targets: [NamedTarget]
  private let store: any AccountStore
  private let metrics: ErasureMetrics
  private let logger: Logger
  private let now: @Sendable () -> Timestamp
  /// What erasures that go on side by side ask of the store, and record there, in one transaction: it costs almost the
  /// same however many they are.
  private let standings: Gathering<EventReference, Result<EventStanding, AccountStoreError>>
  private let known: Gathering<EventID, Result<[ErasureStep], AccountStoreError>>
  private let records: Gathering<(step: ErasureStep, event: EventReference), Result<Void, AccountStoreError>>

  /// Erasures from these targets.
  package init(
    _ targets: [NamedTarget], store: any AccountStore, registry: MetricsRegistry, logger: Logger,
    now: @escaping @Sendable () -> Timestamp
  ) {
    (self.targets, self.store, self.logger, self.now) = (targets, store, logger, now)
    metrics = ErasureMetrics(registry, targets: targets.map(\.name))
    standings = Gathering(upTo: 256) { events throws(AccountStoreError) in
      try await store.standings(of: events, for: .dataEraser)
    }
    known = Gathering(upTo: 256) { events throws(AccountStoreError) in try await store.erasureSteps(of: events) }
    records = Gathering(upTo: 256) { steps throws(AccountStoreError) in
      try await store.record(steps)
      return steps.map { _ in }
    }
  }

  /// Goes on with an erasure from the targets named in `plan`, and returns what became of each, in their order.
  ///
  /// A target that fails does not keep the others from erasing. Throws `.incomplete` once all have been asked and some
  /// have failed, and what the store throws.
  package func proceed(
    with order: ErasureOrder, plan: [String], event: EventReference
  ) async throws -> [ErasureStep] {
    let known = try await known.ask(order.event).get()
    var steps: [ErasureStep] = []
    var failures: [String] = []
    for (name, target) in targets where plan.contains(name) {
      let earlier = known.first { $0.target == name }
      if let earlier, earlier.state == .erased || earlier.state == .retained {
        steps.append(earlier)
        continue
      }
      // A target may take minutes. Who has signed in meanwhile is not the one that the event speaks of.
      if case .superseded(let cause) = try await standings.ask(event).get() {
        throw Superseded(cause: cause)
      }
      var before = earlier?.before
      do {
        steps.append(try await erase(name, target, order, event, wasBegun: earlier != nil, &before))
        metrics.erased[name]?.increment()
      } catch let failure as ErasureFailure {
        failures.append("\(name): \(failure.code.rawValue)")
        metrics.count(failure.code, of: name)
        logger.warning(
          "an erasure target has failed",
          ["erasure.target": .string(name), "event.id": .string(order.event.text), "cause": .describing(failure)])
        try await record(
          ErasureStep(
            target: name, state: .failed, before: before, affected: nil, after: nil,
            detail: failure.code.rawValue, time: now()), of: event)
      }
    }
    guard failures.isEmpty else { throw Incomplete(failures: failures) }
    return steps
  }

  /// An erasure goes on although the token revoker has not ended the account's tokens.
  package func noteUnrevoked(_ event: EventID, waited: Duration) {
    metrics.unrevoked.increment()
    logger.warning(
      "an erasure does not wait for the token revoker any longer",
      ["event.id": .string(event.text), "erasure.waited": .describing(waited)])
  }

  /// Gives up an erasure that something has made void, and returns the targets that may still hold what was to be erased:
  /// they stay open in the store, those too that it has not come to. None where nothing was begun, or all is done.
  package func leave(_ event: EventReference, plan: [String]) async throws -> [String] {
    let known = try await store.erasureSteps(of: event.id)
    guard known.contains(where: { $0.state != .retained }) else { return [] }
    var left = known.filter { $0.state == .begun || $0.state == .failed }.map(\.target)
    for (name, target) in targets
    where plan.contains(name) && !(target is Retention) && !known.contains(where: { $0.target == name }) {
      try await record(
        ErasureStep(
          target: name, state: .failed, before: nil, affected: nil, after: nil, detail: "superseded", time: now()),
        of: event)
      left.append(name)
    }
    return left
  }

  /// Something has made the event void while it was being worked on: what is not erased stays.
  package struct Superseded: Error {
    /// What it was.
    package let cause: Supersession
  }

  /// Some targets have failed; the others are done.
  package struct Incomplete: Error {
    /// `target: cause` of each.
    package let failures: [String]
  }

  private func record(_ step: ErasureStep, of event: EventReference) async throws(AccountStoreError) {
    try await records.ask((step, event)).get()
  }

  private func erase(
    _ name: String, _ target: any ErasureTarget, _ order: ErasureOrder, _ event: EventReference, wasBegun: Bool,
    _ before: inout Int?
  ) async throws -> ErasureStep {
    // Counted once: an attempt that was cut short may have erased already.
    if before == nil { before = try await target.count(order.account) }
    try await record(
      ErasureStep(
        target: name, state: .begun, before: before, affected: nil, after: nil, detail: "", time: now()), of: event)
    let result = try await target.erase(order)
    // Nobody knows how many an earlier attempt has erased that was cut short, or whose answer did not come.
    let affected = wasBegun ? nil : result.affected
    let step = ErasureStep(
      target: name, state: result.state == .erased ? .erased : .retained, before: before, affected: affected,
      after: result.found, detail: result.detail, time: now())
    try await record(step, of: event)
    return step
  }
}
