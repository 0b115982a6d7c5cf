import AccountEvents
import AccountServices
import EventLoop
import Kafka

/// Three brokers with twelve partitions, in memory: what a producer gathers for a partition in a millisecond is one
/// request, and a broker takes one request after another.
@Loop
final class SimulatedBrokers: EventLog {
  typealias Report = @Loop (Result<EventLogPosition, EventLogError>) -> Void

  /// What one request, and each record in it, costs a broker and those that copy it; what three of them on two busy cores
  /// were seen to need.
  private static let cost = (request: Duration.milliseconds(1), record: Duration.microseconds(10))
  /// How long a request is under way beside that.
  private static let latency = Duration.milliseconds(5)
  private static let (partitions, brokers) = (12, 3)

  var areAway = false
  private(set) var (requests, records) = (0, 0)
  private var gathered = [[Report]](repeating: [], count: partitions)
  /// When each broker has done what it was asked.
  private var free = [MonotonicTime](repeating: .now, count: brokers)

  func append(_ record: EventRecord, then report: @escaping Report) {
    if areAway {
      return report(.failure(EventLogError(.unavailable, reason: "away", detail: "the brokers are away")))
    }
    let partition = Int(record.key.map { $0.reduce(0 as UInt32) { $0 &* 31 &+ UInt32($1) } } ?? 0) % Self.partitions
    gathered[partition].append(report)
    guard gathered[partition].count == 1 else { return }
    Task(executorPreference: Loop.executor) { await self.send(partition) }
  }

  /// The drain brings records of events alone.
  func append(_ record: KafkaRecord, then report: @escaping Report) {
    report(.failure(EventLogError(.refused, reason: "no-event", detail: "these brokers take records of events alone")))
  }

  private func send(_ partition: Int) async {
    let broker = partition % Self.brokers
    await pause(until: .now + .milliseconds(1))
    // No more than five requests are under way to one broker.
    while free[broker] > .now + Self.cost.request * 5 { await pause(until: free[broker] + Self.cost.request * -4) }
    let reports = gathered[partition]
    gathered[partition] = []
    free[broker] = max(free[broker], .now) + Self.cost.request + Self.cost.record * reports.count
    requests += 1
    records += reports.count
    await pause(until: free[broker] + Self.latency)
    for report in reports { report(.success(EventLogPosition(partition: Int32(partition), offset: 0))) }
  }

  /// What a request costs a broker that is simulated.
  private func pause(until time: MonotonicTime) async {
    do { try await Loop.sleep(until: time) } catch { areAway = true }  // all ends
  }

  func check() async throws(EventLogError) {}

  func close(within patience: Duration) async {}
}
