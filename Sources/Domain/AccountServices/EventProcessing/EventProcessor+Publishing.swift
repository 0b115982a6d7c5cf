import AccountStore
import EventLoop
import Kafka
import Telemetry

extension EventProcessor {
  /// A record for the log.
  struct Saying {
    /// The number of the announcements that it is one of; nil of a dead letter.
    let number: Int64?
    let record: KafkaRecord
    /// What is said instead where the log never takes the record.
    let shortened: KafkaRecord?

    /// What is to be said of an event.
    static func all(_ announcements: NumberedAnnouncements) -> [Saying] {
      announcements.announcements.map {
        Saying(number: announcements.number, record: KafkaRecord($0), shortened: nil)
      }
    }

    init(_ letter: DeadLetter) { (number, record, shortened) = (nil, letter.record, letter.shortened) }

    /// What is to be tried next, where the log has not taken it.
    func again(after error: EventLogError) -> Saying {
      guard error.outcome == .refused, let shortened else { return self }
      return Saying(number: number, record: shortened, shortened: nil)
    }

    private init(number: Int64?, record: KafkaRecord, shortened: KafkaRecord?) {
      (self.number, self.record, self.shortened) = (number, record, shortened)
    }
  }

  static let logPace = RetryPace(first: .milliseconds(100), longest: .seconds(5))

  /// Puts records onto the log, in their order; again from the first one on that it does not take, until it has all, or
  /// the partition is gone: then `isDone` is told that it has not.
  func publish(
    _ sayings: [Saying], of work: PartitionWork, failures: Int = 0,
    then isDone: @escaping @Loop (_ isThere: Bool) -> Void
  ) {
    guard !sayings.isEmpty else { return isDone(true) }
    var missing = sayings.count
    var first = sayings.count
    var next = sayings
    for (index, saying) in sayings.enumerated() {
      log.append(saying.record) { [weak self] report in
        self?.note(report)
        if case .failure(let error) = report {
          first = min(first, index)
          next[index] = saying.again(after: error)
        }
        missing -= 1
        guard missing == 0, let self else { return }
        if first == sayings.count { return isDone(true) }
        let rest = Publication(sayings: Array(next[first...]), work: work, failures: failures + 1, isDone: isDone)
        agenda.after(Self.logPace.pause(after: failures + 1, random: 0.5 + random() / 2)) { [weak self] in
          guard let self, !isOver else { return }
          republications.add(rest)
        }
      }
    }
  }

  /// What the log has not taken.
  struct Publication {
    let sayings: [Saying]
    let work: PartitionWork
    /// How often it was tried.
    let failures: Int
    let isDone: @Loop (_ isThere: Bool) -> Void
  }

  /// Publishes what is still to be said. A member that does not know yet that it has lost the partition must not say
  /// again, behind newer news, what the next one has said meanwhile: that is forgotten by then. The store is asked once
  /// for all of a partition: in an outage there may be thousands.
  func publishAgain(_ batch: [Publication]) async {
    for publications in Dictionary(grouping: batch, by: { ObjectIdentifier($0.work) }).values {
      let work = publications[0].work
      let waiting = work.isGone ? nil : await whatIsToBeSaid(of: work)
      for publication in publications {
        guard let waiting, !work.isGone else {
          publication.isDone(false)
          continue
        }
        let left = publication.sayings.filter { saying in saying.number.map(waiting) ?? true }
        publish(left, of: work, failures: publication.failures, then: publication.isDone)
      }
    }
  }

  /// Says of a number whether it is still to be said, as far as the store was asked. Nil where nothing is done any more.
  private func whatIsToBeSaid(of work: PartitionWork) async -> ((Int64) -> Bool)? {
    let known = await persistently { () throws(AccountStoreError) in
      try await store.announcements(
        of: consumer.name, partition: work.queue, limit: Self.mostAnnouncements)
    }
    guard let known else { return nil }
    let numbers = Set(known.map(\.number))
    // Behind those that the store was asked for there may be more.
    let last = known.count == Self.mostAnnouncements ? known.last?.number ?? .max : .max
    return { number in numbers.contains(number) || number > last }
  }

  /// Tells when the log begins to fail, and when it takes records again.
  private func note(_ report: Result<EventLogPosition, EventLogError>) {
    switch report {
    case .success:
      guard isLogFailing else { return }
      isLogFailing = false
      logger.info("the log takes records again")
    case .failure(let error):
      guard !isLogFailing else { return }
      isLogFailing = true
      logger.warning(
        "the log does not take what is to be said: it is tried again",
        ["reason": .string(error.reason), "detail": .string(error.detail)])
    }
  }
}
