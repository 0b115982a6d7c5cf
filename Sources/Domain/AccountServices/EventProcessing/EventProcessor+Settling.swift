import AccountEvents
import AccountStore
import EventLoop
import Kafka
import Telemetry

extension EventProcessor {
  /// Writes decisions and forgets what was said, in one transaction, and then asks what there is to be said. Nothing else
  /// writes announcements meanwhile, so that those that are not ours by then are another process's.
  func settle(_ steps: [Step]) async {
    var decisions: [(passage: Passage, decision: Decision?)] = []
    var announced: [Announced] = []
    var rereadings: [PartitionWork] = []
    for step in steps {
      switch step {
      case .settle(let passage, let decision): decisions.append((passage, decision))
      case .forget(let some): announced.append(some)
      case .reread(let work): rereadings.append(work)
      }
    }
    if decisions.isEmpty { await forget(announced) } else { await settle(decisions, forgetting: announced) }
    for work in rereadings { await readWhatIsToBeSaid(work) }
  }

  private func settle(
    _ decisions: [(passage: Passage, decision: Decision?)], forgetting announced: [Announced]
  ) async {
    let numbers = announced.flatMap(\.numbers)
    let settlements = decisions.compactMap { passage, decision -> Settlement? in
      guard let event = passage.subject?.reference else { return nil }
      guard let decision else { return Settlement(ofVoid: event, by: consumer.name) }
      return Settlement(
        of: event, by: consumer.name, outcome: decision.outcome, changes: decision.changes,
        announcements: decision.announcements)
    }
    var refusal: AccountStoreError?
    let settled = await persistently { () throws(AccountStoreError) -> Settled? in
      do throws(AccountStoreError) {
        return try await store.settle(settlements, forgetting: numbers, at: now())
      } catch {
        if error.isTransient { throw error }
        refusal = error
        return nil
      }
    }
    if let settled = settled ?? nil {
      forgotten(announced, settled.missing)
      for (index, outcome) in settled.outcomes.enumerated() {
        self.settled(decisions[index].passage, decisions[index].decision, outcome)
      }
    } else if let refusal {
      if decisions.count == 1 {
        fail(decisions[0].passage, ConsumerFailure.transient("store-\(refusal.code.rawValue)", detail: refusal.detail))
      } else {
        // One of them: the others must not wait for it.
        for decision in decisions { await settle([decision], forgetting: []) }
      }
      await forget(announced)
    }
  }

  private func settled(_ passage: Passage, _ decision: Decision?, _ outcome: SettledOutcome) {
    passage.lane.failingSince = nil
    switch outcome {
    case .applied(let number):
      if let decision { metrics.count(.decided(decision.outcome)) }
      if let decision, let number {
        return announce(passage, NumberedAnnouncements(number: number, announcements: decision.announcements))
      }
      endExecution(passage)
      finish(passage)
      leave(passage)
    case .repeated:
      endExecution(passage)
      passage.isExecuting = false
      awaitWhatIsToBeSaid(passage)
    case .superseded(let supersession):
      metrics.count(.superseded(supersession))
      endExecution(passage)
      finish(passage)
      leave(passage)
    case .open:
      // What made it void has gone since the store was asked: a sign-in after an erasure has begun the account anew.
      endExecution(passage)
      passage.isExecuting = false
      advance(passage.lane)
    }
  }

  // MARK: What there is to be said

  /// An announcement, or several, that Kafka has.
  struct Announced {
    let announcements: [NumberedAnnouncements]
    let partition: PartitionWork
    /// What is done with it; nil where a former process has settled it.
    let passage: Passage?

    var numbers: [Int64] { announcements.map(\.number) }
  }

  /// The event was settled before, by whomever: what there is to be said of it may not have been said.
  func awaitWhatIsToBeSaid(_ passage: Passage) {
    metrics.count(.repeated)
    passage.isSettled = true
    passage.partition.settledBefore.append(passage)
    reread(passage.partition)
  }

  /// Asks the store what there is to be said.
  func reread(_ work: PartitionWork) {
    if work.isRereading { return }
    work.isRereading = true
    settlements.add(.reread(work))
  }

  static let mostAnnouncements = 512

  private func readWhatIsToBeSaid(_ work: PartitionWork) async {
    let settledBefore = work.settledBefore
    work.settledBefore = []
    let before = work.announcing
    guard
      let waiting = await persistently({ () throws(AccountStoreError) in
        try await store.waitingAnnouncements(
          of: consumer.name, partition: work.queue, limit: Self.mostAnnouncements)
      })
    else { return }
    note(waiting.unreadable, of: work)
    let announcements = waiting.readable
    // What was forgotten while the store was reading is ours, too.
    let own = before.union(work.announcing)
    let foreign = work.isGone ? [] : announcements.filter { !own.contains($0.number) }
    let mayBeMore = announcements.count == Self.mostAnnouncements
    work.announcing.formUnion(foreign.map(\.number))
    work.isSaying = true
    publish(foreign.flatMap { Saying.all($0) }, of: work) { [self] isThere in
      work.isSaying = false
      work.isRereading = false
      if !isThere {
        restate(foreign.flatMap(\.announcements))
      } else if !foreign.isEmpty {
        settlements.add(.forget(Announced(announcements: foreign, partition: work, passage: nil)))
      }
      if isThere, mayBeMore, !work.isGone {
        work.settledBefore += settledBefore
        return agenda.after(.milliseconds(10)) { [weak self] in self?.reread(work) }
      }
      said(work, settledBefore)
      if !work.settledBefore.isEmpty { reread(work) }
    }
  }

  /// What cannot be read is left in the store, for `siwa store integrity` and a person; the others go on.
  private func note(_ unreadable: [Int64], of work: PartitionWork) {
    let new = Set(unreadable).subtracting(work.unreadable)
    work.unreadable.formUnion(new)
    guard let first = new.min() else { return }
    logger.error(
      "what is to be said cannot be read, and is not said",
      [
        "kafka.topic": .string(work.partition.topic), "kafka.partition": .integer(work.partition.partition),
        "announcements": .integer(new.count), "announcement": .integer(first),
      ])
  }

  /// All is said that former processes have left.
  private func said(_ work: PartitionWork, _ settledBefore: [Passage]) {
    work.isRecovered = true
    let unrecovered = work.unrecovered
    work.unrecovered = []
    for passage in settledBefore where !passage.isDropped {
      finish(passage)
      leave(passage)
    }
    for passage in unrecovered where !passage.isDropped { advance(passage.lane) }
  }

  /// Says what a partition that began anew has left to be said: nobody reads its records again.
  private func sayWhatIsLeft(of old: PartitionWork) {
    guard let work = partitions[old.partition], work !== old, !isOver else { return }
    if !work.isRereading { return reread(work) }
    // What the store is being asked for may not have it yet.
    agenda.after(.seconds(1)) { [weak self] in self?.sayWhatIsLeft(of: old) }
  }

  private func announce(_ passage: Passage, _ announcements: NumberedAnnouncements) {
    let work = passage.partition
    work.announcing.insert(announcements.number)
    // Whoever has the partition finds them in the store.
    let isLeft = { @Loop [self] in
      sayWhatIsLeft(of: work)
      endExecution(passage)
      leave(passage)
    }
    if work.isGone { return isLeft() }
    publish(Saying.all(announcements), of: work) { [self] isThere in
      guard isThere else {
        // They may be there all the same.
        restate(announcements.announcements)
        return isLeft()
      }
      settlements.add(.forget(Announced(announcements: [announcements], partition: work, passage: passage)))
      leave(passage)
    }
  }

  /// Forgets what Kafka has.
  private func forget(_ batch: [Announced]) async {
    if batch.isEmpty { return }
    let numbers = batch.flatMap(\.numbers)
    let missing = await persistently { () throws(AccountStoreError) in
      try await store.forget(announcements: numbers)
    }
    if let missing { forgotten(batch, missing) }
  }

  private func forgotten(_ batch: [Announced], _ missing: [Int64]) {
    let foreign = Set(missing)
    for announced in batch {
      announced.partition.announcing.subtract(announced.numbers)
      if !foreign.isEmpty {
        // Another member has said them, and perhaps what is newer, before ours came.
        restate(announced.announcements.filter { foreign.contains($0.number) }.flatMap(\.announcements))
      }
      guard let passage = announced.passage else { continue }
      endExecution(passage)
      finish(passage)
    }
  }

  // MARK: The store's failures

  /// Asks the store until it answers. Nil where nothing is done any more.
  func persistently<Value>(_ call: @Loop () async throws(AccountStoreError) -> Value) async -> Value? {
    var failures = 0
    while !isOver {
      do throws(AccountStoreError) {
        let value = try await call()
        note(nil)
        return value
      } catch {
        note(error)
        failures += 1
        pausing += 1
        await agenda.wait(Self.storePace.pause(after: failures, random: 0.5 + random() / 2))
        pausing -= 1
      }
    }
    return nil
  }

  private static let storePace = RetryPace(first: .milliseconds(100), longest: .seconds(5))

  func note(_ error: AccountStoreError?) {
    guard isStoreFailing != (error != nil) else { return }
    isStoreFailing = error != nil
    if let error {
      logger.warning(
        "the account store fails: events wait",
        ["store.error": .string(error.code.rawValue), "cause": .string(error.detail)])
    } else {
      logger.info("the account store answers again")
    }
  }
}
