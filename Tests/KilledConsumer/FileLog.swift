import AccountEvents
import AccountServices
import EventLoop
import Kafka

/// A log in a file: a line a record, of its topic and its value.
@Loop
final class FileLog: EventLog {
  private let directory: String
  private let steps: Steps
  private var count: Int64 = 0

  init(in directory: String, _ steps: Steps) { (self.directory, self.steps) = (directory, steps) }

  func append(_ record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void) {
    preconditionFailure("a consumer says nothing but announcements and dead letters")
  }

  func append(_ record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void) {
    steps.step()
    File.append("\(record.topic) \(String(decoding: record.value ?? [], as: UTF8.self))\n", to: "\(directory)/said")
    steps.step()
    count += 1
    let position = EventLogPosition(partition: 0, offset: count)
    Loop.afterTurn { report(.success(position)) }
  }

  func check() async throws(EventLogError) {}

  func close(within patience: Duration) async {}
}
