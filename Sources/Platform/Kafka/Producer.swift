import CLibrdkafka
public import EventLoop
import JSON

/// Sends records to Kafka and says what became of each.
///
/// Idempotent, and acknowledged by all in-sync replicas: a record that was acknowledged is there once, and records
/// with one key stay in the order in which `send` was called. One producer for a process: two make smaller batches.
///
/// Memory is bounded: by librdkafka's queue (`queue.buffering.max.messages` and `.kbytes`), and by how many senders
/// may wait for room in it.
@Loop
@safe public final class Producer {
  let client: Client
  private let events: EventQueue
  private let deadlines: DeliveryDeadlines
  private let maximumWaiting: Int
  private let log: KafkaLog
  private var topics: [Topic] = []
  private var deliveries = Deliveries()
  private var waitingForRoom = WaitingSenders()
  private let sweep = Deadline()
  private var isClosed = false
  /// Called with librdkafka's statistics, and those before.
  public var onStatistics: ((_ new: KafkaStatistics, _ old: KafkaStatistics) -> Void)?
  private var statistics = KafkaStatistics()
  private var lostWhileClosing = 0
  @safe private var drained: UnsafeContinuation<Void, Never>?

  /// Makes a producer. It connects by itself; `send` waits for that.
  ///
  /// `send` answers within `deadline`, which is how librdkafka's `message.timeout.ms` is set. `maximumWaiting` senders
  /// may wait while librdkafka's queue is full. Throws `invalidConfiguration` with librdkafka's own words.
  public init(
    _ configuration: KafkaConfiguration, deadline: Duration, maximumWaiting: Int = 1024, log: @escaping KafkaLog
  ) throws(KafkaError) {
    deadlines = DeliveryDeadlines(deadline)
    self.maximumWaiting = maximumWaiting
    self.log = log
    client = try Client(
      RD_KAFKA_PRODUCER, configuration, .producer(deadlines), events: RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_STATS,
      log: log)
    events = try unsafe client.queue(rd_kafka_queue_get_main)
    events.onEvents = { [weak self] in self?.serve() }
    sweep.onPass { [weak self] in self?.answerDue() }
  }

  isolated deinit {
    answerEverybody()
    releaseHandles()
  }

  /// Sends the record and returns where it stands once every in-sync replica has it.
  ///
  /// Always answers within the producer's deadline; cancelling the task does not cut it short, because the record
  /// cannot be taken back. An error says whether the record is certainly not there (`isRetriable`), or whether it may
  /// be (`isUncertain`): then it must be sent again, and may be there twice.
  public func send(_ record: KafkaRecord) async throws(KafkaError) -> KafkaPosition {
    try await withCheckedContinuation { continuation in
      send(record) { continuation.resume(returning: $0) }
    }.get()
  }

  /// Sends the record and goes on; `report` is called once, with what `send` would return or throw. It may be called
  /// before this returns.
  public func send(_ record: KafkaRecord, then report: @escaping @Loop (Result<KafkaPosition, KafkaError>) -> Void) {
    send(record, adding: 0, { _ in }, then: report)
  }

  /// Sends the record with up to `count` headers more, which `add` adds, as `send` does without: for whoever has them in
  /// a form of its own, and would make others for nothing.
  public func send(
    _ record: KafkaRecord, adding count: Int, _ add: (inout HeaderList) -> Void,
    then report: @escaping @Loop (Result<KafkaPosition, KafkaError>) -> Void
  ) {
    var headers = HeaderList(room: record.headers.count + count)
    headers.add(record.headers)
    add(&headers)
    accept(record, &headers, from: Sender(answer: report))
  }

  /// Ends the producer: takes nothing more, and waits for what is under way, at most for `limit`.
  ///
  /// Returns how many records were not acknowledged. Their senders have got an error.
  @discardableResult
  public func close(within limit: Duration) async -> Int {
    guard !isClosed else { return 0 }
    isClosed = true
    let deadline = Deadline()
    deadline.onPass { [self] in resumeDrained() }
    await unsafe withUnsafeContinuation { continuation in
      if isIdle { return unsafe continuation.resume() }
      unsafe drained = continuation
      deadline.set(Loop.now + limit)
    }
    deadline.invalidate()
    answerEverybody()
    sweep.invalidate()
    releaseHandles()
    await client.destroy()
    return lostWhileClosing
  }

  /// Asks the cluster for a topic and its partitions. Says in passing whether the cluster can be reached.
  public func describe(topic: String, within limit: Duration) async throws(KafkaError) -> TopicDescription {
    guard !isClosed else { throw .producerClosed }
    return try await client.describe(topic: topic, within: limit)
  }

  /// Hands the record over and leaves the sender where its delivery report finds it. Nothing may come between the two:
  /// a report is served in a later turn of the loop, so this must not suspend.
  private func accept(_ record: KafkaRecord, _ headers: inout HeaderList, from sender: Sender) {
    guard !isClosed else { return sender.answer(.failure(.producerClosed)) }
    let now = Loop.now
    if sweep.due == .distantFuture { sweep.set(now + deadlines.sweep) }
    do throws(KafkaError) {
      if waitingForRoom.isEmpty, let place = try handOver(record, &headers) {
        deliveries.wait(sender, in: place, until: now + deadlines.answer)
      } else if waitingForRoom.count < maximumWaiting {
        var record = record
        record.headers = headers.headers
        waitingForRoom.append(record, sender, until: now + deadlines.room)
      } else {
        throw KafkaError(.queueFull, detail: "as many senders as may wait for room in librdkafka's queue")
      }
    } catch {
      sender.answer(.failure(error))
    }
  }

  /// Gives the record to librdkafka, with these headers. Returns its place, or nil if the queue is full.
  private func handOver(_ record: KafkaRecord, _ headers: inout HeaderList) throws(KafkaError) -> Int? {
    let topic = try topic(named: record.topic)
    let place = deliveries.reserve()
    let result = client.produce(record, &headers, topic: topic, mark: place)
    if result == RD_KAFKA_RESP_ERR_NO_ERROR { return place }
    deliveries.release(place)
    if result == RD_KAFKA_RESP_ERR__QUEUE_FULL { return nil }
    throw KafkaError(result)
  }

  /// librdkafka's object for a topic. A program sends to a handful of topics: comparing names costs less than hashing.
  private func topic(named name: String) throws(KafkaError) -> Topic {
    for topic in topics where topic.name == name { return topic }
    let topic = try Topic(named: name, client)
    topics.append(topic)
    return topic
  }

  /// Takes all delivery reports that have come, then lets waiting senders into the room that they made.
  private func serve() {
    while let event = unsafe events.next() {
      switch unsafe rd_kafka_event_type(event) {
      case RD_KAFKA_EVENT_DR:
        while let message = unsafe rd_kafka_event_message_next(event) {
          let sender = deliveries.finish(unsafe Int(bitPattern: message.pointee._private))
          if let sender { answer(sender, with: unsafe DeliveryResult(message)) }
        }
      case RD_KAFKA_EVENT_STATS:
        if let text = unsafe rd_kafka_event_stats(event) { note(unsafe String(cString: text)) }
      default:
        break
      }
      unsafe rd_kafka_event_destroy(event)
    }
    admitWaiting()
    if isIdle { resumeDrained() }
  }

  private func note(_ text: String) {
    do throws(JSONError) {
      let new = try KafkaStatistics(reading: Array(text.utf8))
      onStatistics?(new, statistics)
      statistics = new
    } catch {
      log(KafkaLogLine(level: .warning, facility: "STATS", text: "statistics cannot be read: \(error)"))
    }
  }

  /// Whether nobody waits for an answer.
  private var isIdle: Bool { deliveries.waiting == 0 && waitingForRoom.isEmpty }

  private func admitWaiting() {
    while let waiting = waitingForRoom.first {
      var headers = HeaderList(room: waiting.record.headers.count)
      headers.add(waiting.record.headers)
      do throws(KafkaError) {
        guard let place = try handOver(waiting.record, &headers) else { return }
        // What is left of the whole deadline: the first part went by while it waited.
        let due = waiting.due + (deadlines.answer - deadlines.room)
        deliveries.wait(waiting.sender, in: place, until: due)
      } catch {
        fail(waiting.sender, error)
      }
      waitingForRoom.removeFirst()
    }
  }

  /// Answers the senders whose time is over. Librdkafka looks for records that are too old once a second only.
  private func answerDue() {
    let next = Loop.now + deadlines.sweep
    while let waiting = waitingForRoom.first, waiting.due <= next {
      waitingForRoom.removeFirst()
      fail(waiting.sender, KafkaError(.queueFull, detail: "no room in librdkafka's queue for too long"))
    }
    for sender in deliveries.takeDue(by: next) { fail(sender, .noAnswer) }
    if !isIdle { sweep.set(next) }
    if isIdle { resumeDrained() }
  }

  private func fail(_ sender: Sender, _ error: KafkaError) { answer(sender, with: .failure(error)) }

  private func answer(_ sender: Sender, with result: DeliveryResult) {
    if isClosed, case .failure = result { lostWhileClosing += 1 }
    sender.answer(result)
  }

  private func answerEverybody() {
    for waiting in waitingForRoom.removeAll() { fail(waiting.sender, .producerClosed) }
    for sender in deliveries.takeDue(by: .distantFuture) { fail(sender, .closedBeforeAnswer) }
  }

  private func resumeDrained() {
    unsafe drained?.resume()
    drained = nil
  }

  private func releaseHandles() {
    events.close()
    for topic in topics { topic.destroy() }
    topics = []
  }
}
