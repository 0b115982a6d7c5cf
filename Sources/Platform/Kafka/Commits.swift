import CLibrdkafka
import EventLoop

/// The commits that are on their way. Their answers come on a queue of their own, so that nobody has to ask for records
/// in order to learn that a commit is done.
@Loop
@safe final class Commits {
  private let client: Client
  private let answers: EventQueue
  private typealias Waiter = CheckedContinuation<Result<Void, KafkaError>, Never>
  private var waiting: [Int: Waiter] = [:]
  private var last = 0

  init(_ client: Client) throws(KafkaError) {
    self.client = client
    answers = try unsafe client.queue(rd_kafka_queue_new)
    answers.onEvents = { [weak self] in self?.serve() }
  }

  isolated deinit { close() }

  /// Commits the offsets and returns once the group's coordinator has them.
  func commit(_ offsets: [TopicPartition: Int64]) async throws(KafkaError) {
    last += 1
    let number = last
    let result = await withCheckedContinuation { (continuation: Waiter) in
      let list = PartitionList(offsets)
      let mark = unsafe UnsafeMutableRawPointer(bitPattern: number)
      let error = unsafe rd_kafka_commit_queue(client.handle.pointer, list.pointer, answers.pointer, nil, mark)
      if error == RD_KAFKA_RESP_ERR_NO_ERROR {
        waiting[number] = continuation
      } else {
        continuation.resume(returning: .failure(KafkaError(error)))
      }
    }
    try result.get()
  }

  /// Tells everybody who waits that nobody will know, and gives the queue back.
  func close() {
    answers.close()
    for continuation in waiting.values {
      continuation.resume(
        returning: .failure(KafkaError(.closed, .uncertain, detail: "the consumer was closed before the answer")))
    }
    waiting = [:]
  }

  private func serve() {
    while let event = unsafe answers.next() {
      let entries = unsafe PartitionList.entries(of: rd_kafka_event_topic_partition_list(event))
      let failure = entries.failure(unsafe rd_kafka_event_error(event)).map { KafkaError($0) }
      let number = unsafe Int(bitPattern: rd_kafka_event_opaque(event))
      waiting.removeValue(forKey: number)?.resume(returning: failure.map { .failure($0) } ?? .success(()))
      unsafe rd_kafka_event_destroy(event)
    }
  }
}
