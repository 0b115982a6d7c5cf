import CLibrdkafka
public import EventLoop

/// Reads records from Kafka: the caller asks for the next ones when it is done with the last.
///
/// It either reads given partitions (`assign`, then `next`) or takes part in a group (`subscribe`, then `nextEvent`).
/// Nothing is committed by itself. Memory is bounded by librdkafka's queue (`queued.max.messages.kbytes`).
@Loop
@safe public final class Consumer {
  let client: Client
  let membership: GroupMembership?
  let commits: Commits
  private let events: EventQueue
  /// How long librdkafka may go without being asked, while nothing comes: it would leave the group otherwise.
  private let patience: Duration
  private let alarm = Deadline()
  private var names = TopicNames()
  /// As many as a reader has under way at a time, and then some.
  var unreadHeaders = UnreadHeaders(limit: 8192)
  /// What is told when the records before it are.
  private var failure: KafkaError?
  private(set) var isClosed = false
  /// Whether something may have come since the queue was last seen empty.
  private var isAwake = false
  @safe private var waiter: UnsafeContinuation<Void, Never>?
  /// What is ours in the group.
  var share = GroupShare()
  /// The partitions that librdkafka keeps paused, those among them that went meanwhile.
  var paused: Set<TopicPartition> = []

  /// Makes a consumer that reads nothing yet. `group` is needed for `subscribe` only.
  ///
  /// Throws `invalidConfiguration` with librdkafka's own words.
  public init(
    _ configuration: KafkaConfiguration, group membership: GroupMembership?, log: @escaping KafkaLog
  ) throws(KafkaError) {
    self.membership = membership
    client = try Client(
      RD_KAFKA_CONSUMER, configuration, .consumer(membership),
      events: membership == nil ? 0 : RD_KAFKA_EVENT_REBALANCE, log: log)
    unsafe rd_kafka_poll_set_consumer(client.handle.pointer)
    commits = try Commits(client)
    events = try unsafe client.queue(rd_kafka_queue_get_consumer)
    patience = .milliseconds((client["max.poll.interval.ms"].flatMap { Int($0) } ?? 300_000) / 3)
    events.onEvents = { [weak self] in self?.wake() }
    alarm.onPass { [weak self] in self?.wake() }
    share.deadline.onPass { [weak self] in self?.loseWhatWasNotReleased() }
  }

  isolated deinit {
    events.close()
    commits.close()
    unreadHeaders.copyAll()
  }

  /// Reads these partitions from now on, and no others.
  public func assign(_ partitions: [PartitionStart]) throws(KafkaError) {
    precondition(membership == nil, "the group assigns the partitions of its members")
    guard !isClosed else { throw .consumerClosed }
    let list = PartitionList(
      Dictionary(
        partitions.map { (TopicPartition($0.topic, $0.partition), $0.place.number) }, uniquingKeysWith: { $1 }))
    let result = unsafe rd_kafka_assign(client.handle.pointer, list.pointer)
    if result != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(result) }
  }

  /// The next records, at least one and at most `limit`; waits until there are any. One task at a time.
  ///
  /// Returns none once the consumer is closed or the task is cancelled. Throws what librdkafka says of a partition that
  /// cannot be read; unless the error is fatal, the next call goes on.
  public func next(upTo limit: Int) async throws(KafkaError) -> [ConsumedRecord] {
    try await next(upTo: limit, until: .distantFuture)
  }

  /// The same, for a caller that has something else to do at `time`: returns none then.
  public func next(upTo limit: Int, until time: MonotonicTime) async throws(KafkaError) -> [ConsumedRecord] {
    precondition(membership == nil, "a member of a group is told of more than records")
    while !isClosed, !Task.isCancelled {
      isAwake = false
      let records = take(upTo: limit)
      if !records.isEmpty { return records }
      try throwFailure()
      guard .now < time else { return [] }
      await somethingComes(before: time)
    }
    return []
  }

  /// What happens next to a member of a group: records, at most `limit`, or that partitions come or go; waits until
  /// there is something. One task at a time.
  ///
  /// Whoever has enough records must go on asking, and `pause` what he has enough of: a member that does not ask for
  /// `max.poll.interval.ms` loses its partitions, and nobody is told of partitions that come or go unless he asks.
  ///
  /// Returns nil once the consumer is closed or the task is cancelled. Throws what librdkafka says of a partition or of
  /// the group; unless the error is fatal, the next call goes on. What a fatal error takes away is told as lost before.
  public func nextEvent(upTo limit: Int) async throws(KafkaError) -> GroupEvent? {
    precondition(membership != nil, "a consumer without a group reads with next")
    while !isClosed, !Task.isCancelled {
      isAwake = false
      let records = take(upTo: limit)
      if !records.isEmpty { return .records(records) }
      if !share.notices.isEmpty { return share.notices.removeFirst() }
      try throwFailure()
      await somethingComes()
    }
    return nil
  }

  /// Leaves the group, if it is in one and has no name of its own there, and ends the consumer. Nothing is committed,
  /// and records that were not asked for yet are dropped: whoever holds some finishes and commits first.
  public func close() async {
    guard !isClosed else { return }
    isClosed = true
    alarm.invalidate()
    share.deadline.invalidate()
    wake()
    events.close()
    commits.close()
    unreadHeaders.copyAll()
    await client.destroy()
  }

  /// Takes what librdkafka has read already. Stops at what must be told after the records before it.
  private func take(upTo limit: Int) -> [ConsumedRecord] {
    var records: [ConsumedRecord] = []
    while records.count < limit, failure == nil, share.notices.isEmpty, let event = unsafe events.next() {
      switch unsafe rd_kafka_event_type(event) {
      case RD_KAFKA_EVENT_FETCH:
        // One an event: librdkafka hands records to applications one by one.
        if let message = unsafe rd_kafka_event_message_next(event) {
          unsafe records.append(ConsumedRecord(.init(event: event, pointer: message), &names, unreadHeaders))
          continue
        }
      case RD_KAFKA_EVENT_REBALANCE:
        unsafe rebalance(event)
      case RD_KAFKA_EVENT_ERROR:
        if unsafe rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION {
          client.mustNeverBeFreed()
        }
        if !isIrrelevant(unsafe rd_kafka_event_error(event)) { fail(unsafe KafkaError(reported: event)) }
      default:
        break
      }
      unsafe rd_kafka_event_destroy(event)
    }
    return records
  }

  /// Keeps an error until it is asked for.
  func fail(_ error: KafkaError) {
    if error.isFatal { share.loseAll() }
    // What makes it impossible to go on counts more than what was to be told before.
    if failure == nil || error.isFatal && failure?.isFatal != true { failure = error }
  }

  /// Whether an error says nothing of what is read. A reader without a group is also told that it may not use the group
  /// `none`: librdkafka asks for the coordinator of every `group.id`, and nobody grants that one.
  private func isIrrelevant(_ number: rd_kafka_resp_err_t) -> Bool {
    number == RD_KAFKA_RESP_ERR__PARTITION_EOF
      || membership == nil && number == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED
  }

  private func throwFailure() throws(KafkaError) {
    guard let failure else { return }
    self.failure = nil
    throw failure
  }

  /// Suspends until `wake` was called since `isAwake` was taken back: it may be called while this begins to wait.
  private func somethingComes(before time: MonotonicTime = .distantFuture) async {
    await withTaskCancellationHandler {
      alarm.set(min(time, Loop.now + patience))
      await unsafe withUnsafeContinuation { continuation in
        if isAwake { return unsafe continuation.resume() }
        precondition(unsafe waiter == nil, "two tasks wait for one consumer")
        unsafe waiter = continuation
      }
      alarm.clear()
    } onCancel: {
      Task { @Loop in wake() }
    }
  }

  func wake() {
    isAwake = true
    unsafe waiter?.resume()
    waiter = nil
  }
}

extension PartitionStart.Place {
  /// The offset as librdkafka counts.
  fileprivate var number: Int64 {
    switch self {
    case .beginning: Int64(RD_KAFKA_OFFSET_BEGINNING)
    case .end: Int64(RD_KAFKA_OFFSET_END)
    case .offset(let number): number
    }
  }
}

extension KafkaError {
  static let consumerClosed = KafkaError(.closed, detail: "the consumer is closed")
}
