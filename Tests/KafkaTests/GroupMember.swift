import EventLoop
import Kafka
import TestSupport
import Testing

/// A member of a group as a service would be one: it does something with each record (it remembers it), and commits how
/// far it is when a partition goes, and only then.
@Loop
final class GroupMember {
  let consumer: Consumer
  /// What it has done, in its order.
  private(set) var done: [ConsumedRecord] = []
  /// What it was told, but for records.
  private(set) var told: [GroupEvent] = []
  /// How far it is in each partition that is its own.
  private(set) var offsets: [TopicPartition: Int64] = [:]
  /// The same as it is committed.
  var commitments: [TopicPartition: CommittedOffset] { offsets.mapValues { CommittedOffset($0) } }
  private(set) var error: KafkaError?
  /// Whether it hands over at once what is revoked.
  var releases = true
  private var task: Task<Void, Never>?

  /// Joins the group for a topic.
  init(
    _ cluster: Cluster, _ group: ConsumerGroup, _ topic: String, instance: String? = nil,
    handover: Duration = .seconds(120), properties: [(String, String)] = []
  ) throws {
    consumer = try Consumer(
      // A busy machine must not decide a test: a member that is alive stays one.
      cluster.configuration([("session.timeout.ms", "45000"), ("heartbeat.interval.ms", "100")] + properties),
      group: GroupMembership(group, instance: instance, handover: handover), log: { _ in })
    try consumer.subscribe(to: [topic])
    start()
  }

  var partitions: Set<TopicPartition> { consumer.partitions }

  /// Begins to ask, or goes on.
  func start() {
    task = Task(executorPreference: Loop.executor) { await self.run() }
  }

  /// Asks no more.
  func stop() async {
    task?.cancel()
    await task?.value
    task = nil
  }

  /// Lets go what was revoked, with what was done committed.
  func release(_ partitions: Set<TopicPartition>) async throws(KafkaError) {
    try await consumer.release(
      committing: commitments.filter { partitions.contains($0.key) }, within: .seconds(300))
    for partition in partitions { offsets[partition] = nil }
  }

  /// Goes in good order: stops, commits how far it is, leaves.
  func leave() async throws(KafkaError) {
    while true {
      await stop()
      do throws(KafkaError) {
        try await consumer.commit(commitments, within: .seconds(300))
        return await consumer.close()
      } catch {
        // Partitions are moving: the member goes along first.
        guard [.groupChanged, .groupMoving].contains(error.code) else { throw error }
      }
      start()
      await turn()
    }
  }

  private func run() async {
    do throws(KafkaError) {
      while let event = try await consumer.nextEvent(upTo: 7) {
        switch event {
        case .records(let records):
          for record in records {
            offsets[TopicPartition(record.topic, record.position.partition)] = record.position.offset + 1
          }
          done += records
        case .assigned:
          told.append(event)
        case .revoked(let partitions):
          told.append(event)
          if releases { try await release(partitions) }
        case .lost(let partitions):
          told.append(event)
          for partition in partitions { offsets[partition] = nil }
        }
      }
    } catch {
      self.error = error
    }
  }
}
