import EventLoop

/// The senders that wait for room in librdkafka's queue, in their order.
struct WaitingSenders {
  struct Waiting {
    let record: KafkaRecord
    let sender: Sender
    /// When it is told that there was no room.
    let due: MonotonicTime
  }

  private var senders: [Waiting] = []
  private var head = 0

  var isEmpty: Bool { head == senders.count }
  var count: Int { senders.count - head }
  var first: Waiting? { isEmpty ? nil : senders[head] }

  mutating func append(_ record: KafkaRecord, _ sender: Sender, until due: MonotonicTime) {
    senders.append(Waiting(record: record, sender: sender, due: due))
  }

  mutating func removeFirst() {
    head += 1
    // Half of the storage is used up: moving the rest down costs each sender one move at most.
    if head * 2 >= senders.count {
      senders.removeFirst(head)
      head = 0
    }
  }

  mutating func removeAll() -> [Waiting] {
    defer { (senders, head) = ([], 0) }
    return Array(senders[head...])
  }
}
