import CLibrdkafka
public import EventLoop

/// Reads records from Kafka: the caller asks for the next ones when it is done with the last.
///
/// It either reads given partitions (`assign`) or takes part in a group (`subscribe`). Nothing is committed by itself.
/// Memory is bounded by librdkafka's queue (`queued.max.messages.kbytes`).
@Loop
@safe public final class Consumer {
  private let client: Client
  private let events: EventQueue
  private let isInGroup: Bool
  /// How long librdkafka may go without being asked, while nothing comes: it would leave the group otherwise.
  private let patience: Duration
  private let alarm = Deadline()
  private var failure: KafkaError?
  private var isClosed = false
  /// Whether something may have come since the queue was last seen empty.
  private var isAwake = false
  @safe private var waiter: UnsafeContinuation<Void, Never>?

  /// Makes a consumer that reads nothing yet. `group` is needed for `subscribe` only.
  ///
  /// Throws `invalidConfiguration` with librdkafka's own words.
  public init(_ configuration: KafkaConfiguration, group: ConsumerGroup?, log: @escaping KafkaLog) throws(KafkaError) {
    isInGroup = group != nil
    client = try Client(RD_KAFKA_CONSUMER, configuration, .consumer(group), events: 0, log: log)
    unsafe rd_kafka_poll_set_consumer(client.handle.pointer)
    events = try unsafe client.queue(rd_kafka_queue_get_consumer)
    patience = .milliseconds((client["max.poll.interval.ms"].flatMap { Int($0) } ?? 300_000) / 3)
    events.onEvents = { [weak self] in self?.wake() }
    alarm.onPass { [weak self] in self?.wake() }
  }

  isolated deinit { events.close() }

  /// Reads these partitions from now on, and no others.
  public func assign(_ partitions: [PartitionStart]) throws(KafkaError) {
    guard !isClosed else { throw .consumerClosed }
    let list = unsafe rd_kafka_topic_partition_list_new(CInt(clamping: partitions.count))
    defer { unsafe rd_kafka_topic_partition_list_destroy(list) }
    for start in partitions {
      let entry = unsafe rd_kafka_topic_partition_list_add(list, start.topic, start.partition)
      unsafe entry?.pointee.offset = start.place.number
    }
    let result = unsafe rd_kafka_assign(client.handle.pointer, list)
    if result != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(result) }
  }

  /// Joins the group for these topics: the cluster divides their partitions among the members.
  public func subscribe(to topics: [String]) throws(KafkaError) {
    precondition(isInGroup, "a consumer without a group cannot subscribe")
    guard !isClosed else { throw .consumerClosed }
    let list = unsafe rd_kafka_topic_partition_list_new(CInt(clamping: topics.count))
    defer { unsafe rd_kafka_topic_partition_list_destroy(list) }
    for topic in topics { unsafe rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA) }
    let result = unsafe rd_kafka_subscribe(client.handle.pointer, list)
    if result != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(result) }
  }

  /// The next records, at least one and at most `limit`; waits until there are any. One task at a time.
  ///
  /// Returns none once the consumer is closed or the task is cancelled. Throws what librdkafka says of a partition that
  /// cannot be read; unless the error is fatal, the next call goes on.
  public func next(upTo limit: Int) async throws(KafkaError) -> [ConsumedRecord] {
    while !isClosed, !Task.isCancelled {
      isAwake = false
      let records = take(upTo: limit)
      if !records.isEmpty { return records }
      if let failure {
        self.failure = nil
        throw failure
      }
      await somethingComes()
    }
    return []
  }

  /// Leaves the group, if it is in one, and ends the consumer.
  public func close() async {
    guard !isClosed else { return }
    isClosed = true
    alarm.invalidate()
    wake()
    events.close()
    let handle = client.handle
    await client.destroy { unsafe rd_kafka_consumer_close(handle.pointer) }
  }

  /// Takes what librdkafka has read already. Stops at an error, which is told when the records before it are.
  private func take(upTo limit: Int) -> [ConsumedRecord] {
    var records: [ConsumedRecord] = []
    while records.count < limit, failure == nil, let event = unsafe events.next() {
      switch unsafe rd_kafka_event_type(event) {
      case RD_KAFKA_EVENT_FETCH:
        // One a event: librdkafka hands records to applications one by one.
        while let message = unsafe rd_kafka_event_message_next(event) {
          unsafe records.append(ConsumedRecord(message))
        }
      case RD_KAFKA_EVENT_ERROR:
        let number = unsafe rd_kafka_event_error(event)
        if number != RD_KAFKA_RESP_ERR__PARTITION_EOF {
          let words = unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) }
          failure = KafkaError(number, words: words)
        }
      default:
        break
      }
      unsafe rd_kafka_event_destroy(event)
    }
    return records
  }

  /// Suspends until `wake` was called since `isAwake` was taken back: it may be called while this begins to wait.
  private func somethingComes() async {
    await withTaskCancellationHandler {
      alarm.set(Loop.now + patience)
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

  private func wake() {
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
  fileprivate static let consumerClosed = KafkaError(.closed, detail: "the consumer is closed")
}

extension ClientProfile {
  /// What a consumer depends on, and what suits one that loses nothing.
  fileprivate static func consumer(_ group: ConsumerGroup?) -> ClientProfile {
    ClientProfile(
      defaults: [
        (name: "auto.offset.reset", value: "earliest"),
        (name: "check.crcs", value: "true"),
        (name: "queued.max.messages.kbytes", value: "8192"),
        (name: "reconnect.backoff.max.ms", value: "1000"),
        (name: "socket.nagle.disable", value: "true"),
      ],
      requirements: [
        Requirement(
          names: ["enable.auto.commit", "auto.commit.enable"], value: "false",
          reason: "an offset is committed after what was done with the record, by the program"),
        Requirement(
          names: ["group.id"], value: group?.name ?? "none",
          reason: "the program names its group itself"),  // librdkafka assigns no partitions without a name here
        log,
      ])
  }
}
