import CLibrdkafka
import EventLoop

/// The commits of a consumer: one is on its way at a time, because librdkafka may send an older one again behind a newer
/// one. Their answers come on a queue of their own, so that nobody has to ask for records in order to learn that a commit
/// is done.
@Loop
@safe final class Commits {
  private typealias Waiter = CheckedContinuation<Result<Void, KafkaError>, Never>

  /// A commit that somebody waits for.
  private final class Commit {
    let offsets: [TopicPartition: CommittedOffset]
    let objection: @Loop () -> KafkaError?
    let deadline = Deadline()
    /// Nil once it was answered.
    private var waiter: Waiter?

    init(_ offsets: [TopicPartition: CommittedOffset], _ objection: @escaping @Loop () -> KafkaError?, _ waiter: Waiter)
    {
      (self.offsets, self.objection, self.waiter) = (offsets, objection, waiter)
    }

    @Loop
    func answer(_ result: Result<Void, KafkaError>) {
      deadline.invalidate()
      waiter?.resume(returning: result)
      waiter = nil
    }
  }

  private let client: Client
  private let answers: EventQueue
  /// The one that librdkafka has, even where nobody waits for it any more.
  private var underWay: Commit?
  /// Those behind it, in their order.
  private var waiting: [Commit] = []

  init(_ client: Client) throws(KafkaError) {
    self.client = client
    answers = try unsafe client.queue(rd_kafka_queue_new)
    answers.onEvents = { [weak self] in self?.serve() }
  }

  isolated deinit { close() }

  /// Commits the offsets, once those before are, and returns once the group's coordinator has them. `objection` is asked
  /// for when their turn comes.
  func commit(
    _ offsets: [TopicPartition: CommittedOffset], within limit: Duration,
    unless objection: @escaping @Loop () -> KafkaError?
  ) async throws(KafkaError) {
    try await withCheckedContinuation { (waiter: Waiter) in
      let commit = Commit(offsets, objection, waiter)
      commit.deadline.onPass { [weak self, unowned commit] in self?.giveUp(commit) }
      commit.deadline.set(.now + limit)
      waiting.append(commit)
      sendNext()
    }.get()
  }

  /// Tells everybody who waits that nobody will know, and gives the queue back.
  func close() {
    answers.close()
    underWay?.answer(
      .failure(KafkaError(.closed, .uncertain, detail: "the consumer was closed before the answer")))
    for commit in waiting { commit.answer(.failure(.consumerClosed)) }
    (underWay, waiting) = (nil, [])
  }

  private func sendNext() {
    while underWay == nil, !waiting.isEmpty {
      let commit = waiting.removeFirst()
      if let objection = commit.objection() {
        commit.answer(.failure(objection))
        continue
      }
      let list = PartitionList(commit.offsets)
      let error = unsafe rd_kafka_commit_queue(client.handle.pointer, list.pointer, answers.pointer, nil, nil)
      if error == RD_KAFKA_RESP_ERR_NO_ERROR { underWay = commit } else { commit.answer(.failure(KafkaError(error))) }
    }
  }

  private func giveUp(_ commit: Commit) {
    if commit === underWay {
      // It cannot be taken back, and the next one waits for it all the same.
      commit.answer(.failure(KafkaError(.timedOut, detail: "the group's coordinator did not answer a commit in time")))
    } else {
      waiting.removeAll { $0 === commit }
      commit.answer(
        .failure(
          KafkaError(.brokerUnavailable, detail: "the group's coordinator has not answered the commit before yet")))
    }
  }

  private func serve() {
    while let event = unsafe answers.next() {
      let entries = unsafe PartitionList.entries(of: rd_kafka_event_topic_partition_list(event))
      let failure = entries.failure(unsafe rd_kafka_event_error(event)).map { KafkaError($0) }
      unsafe rd_kafka_event_destroy(event)
      let commit = underWay
      underWay = nil
      commit?.answer(failure.map { .failure($0) } ?? .success(()))
    }
    sendNext()
  }
}
