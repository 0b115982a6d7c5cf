import EventLoop

/// How the time that a sender has is divided.
struct DeliveryDeadlines {
  /// The whole: no answer comes later.
  let answer: Duration
  /// How long a sender may wait for room in librdkafka's queue.
  let room: Duration
  /// How long librdkafka has from then on. It looks for records that are too old once a second, so it may come later
  /// than this.
  let delivery: Duration
  /// How often senders whose time is over are looked for. They are answered up to this much too early, never too late.
  let sweep: Duration

  init(_ answer: Duration) {
    precondition(answer >= .milliseconds(10), "a deadline that no broker can keep")
    self.answer = answer
    room = answer / 4
    delivery = answer - room
    sweep = answer / 20
  }

  /// `delivery` in milliseconds.
  var deliveryMilliseconds: Int64 { delivery.wholeNanoseconds / 1_000_000 }
}

extension ClientProfile {
  /// What a producer depends on, and what suits one that many callers wait for.
  static func producer(_ deadlines: DeliveryDeadlines) -> ClientProfile {
    let milliseconds = deadlines.deliveryMilliseconds
    return ClientProfile(
      defaults: [
        // An accepted notification of 32 connections over 12 partitions costs 92 µs with 1 and 114 with 0.2, for the same
        // time from POST to 200 at 1,000 a second (`make bench`, one run each on an otherwise quiet machine): records in a
        // request are what a broker and its connection cost hang on.
        (name: "linger.ms", value: "1"),
        // A broker begins a connection's next request when it has answered the one before, and each request has records
        // of one partition. With five under way and as many made up behind them, as librdkafka has it, records wait for
        // their turn in requests that nothing can be added to any more: a request then has a third as many.
        (name: "max.in.flight", value: "1"),
        (name: "socket.nagle.disable", value: "true"),
        (name: "queue.buffering.max.messages", value: "10000"),
        (name: "queue.buffering.max.kbytes", value: "65536"),
        // So that a topic which is not there is named as the cause, and not the time that went by.
        (name: "topic.metadata.propagation.max.ms", value: "\(milliseconds / 2)"),
        (name: "reconnect.backoff.max.ms", value: "1000"),
        (name: "statistics.interval.ms", value: "15000"),
      ],
      requirements: [
        Requirement(names: ["enable.idempotence"], value: "true", reason: "a record must not be there twice"),
        Requirement(
          names: ["acks", "request.required.acks"], value: "-1",
          reason: "acknowledged means that all in-sync replicas have it (-1, all)"),
        Requirement(
          names: ["message.timeout.ms", "delivery.timeout.ms"], value: "\(milliseconds)",
          reason: "it follows from the deadline of the answer that waits for the record"),
        Requirement(
          names: ["delivery.report.only.error"], value: "false", reason: "senders wait for every report"),
        Requirement(names: ["transactional.id"], value: nil, reason: "records are sent without transactions"),
        Requirement(
          names: ["partitioner"], value: "murmur2_random",
          reason: "the records of one key stay in one partition, in order; the Java clients find the same one"),
        noTopics, allTopics, log,
      ],
      minima: [newPartitions])
  }
}
