import AccountEvents
import AccountStore
import EventLoop
import Kafka

extension EventProcessor {
  /// What became of a record that was to be begun.
  enum Beginning {
    /// Something goes on, and `leave` follows.
    case underWay
    /// There is nothing to do.
    case over
  }

  /// What the store writes, or is asked, in one turn.
  enum Step {
    /// A decision; nil only notes that something else has made the event void.
    case settle(Passage, Decision?)
    /// What was said and is to be forgotten.
    case forget(Announced)
    /// What there is to be said of a partition.
    case reread(PartitionWork)
  }

  /// Begins with a record, or begins anew.
  func begin(_ passage: Passage) -> Beginning {
    if passage.isDropped || passage.partition.isLeaving {
      if !passage.isDropped { putAside([passage]) }
      passage.isDropped = true
      return .over
    }
    guard passage.partition.isRecovered else {
      passage.partition.unrecovered.append(passage)
      return .underWay
    }
    do throws(EventDecodingError) {
      if passage.subject == nil { passage.subject = try subject(of: passage) }
      guard let subject = passage.subject else {
        metrics.count(.passedOver)
        finish(passage)
        return .over
      }
      switch consumer.work {
      case .outside: standings.add(passage)
      case .local(let decide): self.decide(passage, subject, decide)
      }
    } catch {
      execute(passage)
      bury(passage, .permanent(error.code.rawValue, detail: error.detail))
    }
    return .underWay
  }

  /// What a record says; nil where the consumer has nothing to do with it.
  func subject(
    of passage: Passage
  ) throws(EventDecodingError) -> (event: AccountEvent, reference: EventReference)? {
    let record = passage.record
    let event = try AccountEvent(decoding: record.value ?? [])
    guard let interest = consumer.interest(event) else { return nil }
    let origin = EventOrigin(
      topic: record.topic, partition: record.position.partition, offset: record.position.offset)
    return (
      event,
      EventReference(
        id: event.id, account: event.account, occurredAt: event.occurredAt, origin: origin, weight: interest.weight,
        yieldsTo: interest.yieldsTo)
    )
  }

  /// From here on the record is not dropped before it comes to an end.
  func execute(_ passage: Passage) {
    passage.isExecuting = true
    passage.partition.executing += 1
  }

  /// The record comes to an end here, for now.
  func endExecution(_ passage: Passage) {
    passage.partition.executing -= 1
    wake()
  }

  // MARK: How it stands

  /// Asks the store how events stand.
  func ask(_ batch: [Passage]) async {
    let passages = batch.filter { !$0.isDropped }
    let events = passages.compactMap(\.subject?.reference)
    guard !events.isEmpty,
      let standings = await persistently({ () throws(AccountStoreError) in
        try await store.standings(of: events, for: consumer.name)
      })
    else { return }
    for (passage, standing) in zip(passages, standings) where !passage.isDropped {
      switch standing {
      case .open(let attempts):
        passage.attempts = attempts
        passage.supersession = nil
        ready.append(passage)
      case .settled:
        awaitWhatIsToBeSaid(passage)
      case .superseded(let cause) where consumer.lookAtVoid != nil:
        passage.supersession = cause
        ready.append(passage)
      case .superseded:
        execute(passage)
        settlements.add(.settle(passage, nil))
      }
    }
    startWorkers()
  }

  // MARK: The decision

  private func decide(
    _ passage: Passage, _ subject: (event: AccountEvent, reference: EventReference), _ decide: EventConsumer.Decide
  ) {
    execute(passage)
    let delivery = Delivery(event: subject.event, attempt: passage.attempts + 1, reference: subject.reference)
    do { decided(passage, try decide(delivery)) } catch { fail(passage, error) }
  }

  private func startWorkers() {
    while workers.count < min(bounds.concurrency, workers.count + ready.count), !ready.isEmpty {
      let passage = ready.removeFirst()
      lastWorker += 1
      let number = lastWorker
      workers[number] = Task(executorPreference: Loop.executor) { await self.work(on: passage, as: number) }
    }
  }

  /// Processes one event after another, as long as there are any.
  private func work(on first: Passage, as number: Int) async {
    var next: Passage? = first
    while let passage = next {
      await process(passage)
      next = ready.isEmpty ? nil : ready.removeFirst()
    }
    workers[number] = nil
  }

  private func process(_ passage: Passage) async {
    guard !passage.isDropped, let subject = passage.subject, case .outside(let process) = consumer.work else { return }
    execute(passage)
    let delivery = Delivery(
      event: subject.event, attempt: passage.attempts + 1, waits: passage.waits, reference: subject.reference)
    do {
      if let supersession = passage.supersession {
        try await consumer.lookAtVoid?(delivery, supersession)
        settlements.add(.settle(passage, nil))
      } else {
        decided(passage, try await process(delivery))
      }
    } catch {
      fail(passage, error)
    }
  }

  private func decided(_ passage: Passage, _ decision: Decision) {
    guard consumer.outcomes.contains(decision.outcome) else {
      return fail(passage, ConsumerFailure.transient("undeclared-outcome", detail: decision.outcome))
    }
    settlements.add(.settle(passage, decision))
  }
}
