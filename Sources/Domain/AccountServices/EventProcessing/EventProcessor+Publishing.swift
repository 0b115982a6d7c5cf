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
        if case .failure(let error) = report {
          first = min(first, index)
          next[index] = saying.again(after: error)
          self?.logger.warning(
            "the log does not take what is to be said",
            [
              "kafka.topic": .string(saying.record.topic), "reason": .string(error.reason),
              "detail": .string(error.detail),
            ])
        }
        missing -= 1
        guard missing == 0, let self else { return }
        if first == sayings.count { return isDone(true) }
        let rest = Array(next[first...])
        let pause = Self.logPace.pause(after: failures + 1, random: 0.5 + random() / 2)
        agenda.after(pause) { [weak self] in
          guard let self, !isOver else { return }
          republishing += 1
          Task(executorPreference: Loop.executor) {
            await self.publishAgain(rest, of: work, failures: failures + 1, then: isDone)
          }
        }
      }
    }
  }

  /// Publishes what is still to be said. A member that does not know yet that it has lost the partition must not say
  /// again, behind newer news, what the next one has said meanwhile: that is forgotten by then.
  private func publishAgain(
    _ sayings: [Saying], of work: PartitionWork, failures: Int, then isDone: @escaping @Loop (Bool) -> Void
  ) async {
    defer { republishing -= 1 }
    guard !work.isGone, let left = await stillToBeSaid(sayings, of: work), !work.isGone else { return isDone(false) }
    publish(left, of: work, failures: failures, then: isDone)
  }

  private func stillToBeSaid(_ sayings: [Saying], of work: PartitionWork) async -> [Saying]? {
    guard sayings.contains(where: { $0.number != nil }) else { return sayings }
    let known = await persistently { () throws(AccountStoreError) in
      try await store.announcements(
        of: consumer.name, partition: work.queue, limit: Self.mostAnnouncements)
    }
    guard let known else { return nil }
    let numbers = Set(known.map(\.number))
    // Behind those that the store was asked for there may be more.
    let last = known.count == Self.mostAnnouncements ? known.last?.number ?? .max : .max
    return sayings.filter { saying in saying.number.map { numbers.contains($0) || $0 > last } ?? true }
  }
}
