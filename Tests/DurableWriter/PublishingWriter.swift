import AccountEvents
import AccountServices
import EventLoop
import Glibc
import Kafka
import Telemetry

/// Publishes as the ingress does, to a log that fails, is late, and takes what it reports as uncertain; and is killed at
/// one of its steps. `log` and `answered` in its directory say what stands on the log, and what was answered for.
@Loop
final class PublishingWriter: EventLog {
  private static let people = 12
  private let file, answers: CInt
  /// At which step it kills itself; what happens before and behind each counts.
  private let last: Int
  private var steps = 0

  private init(_ directory: String, untilStep last: Int) {
    self.last = last
    file = unsafe open("\(directory)/log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    answers = unsafe open("\(directory)/answered", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
  }

  /// Runs a life. One that is not to be killed publishes nothing new, and ends when the spool is empty.
  static func run(_ directory: String, untilStep last: Int) async -> Int32 {
    do {
      let (log, logger) = (PublishingWriter(directory, untilStep: last), Logger(level: .error, format: .text))
      let spool = try await Spool.open(
        directory: "\(directory)/spool", limit: 1 << 30, now: { .now }, registry: MetricsRegistry(), logger: logger)
      let accepted = AcceptedEvents(
        in: "\(directory)/spool", number: 1000, time: .seconds(86_400), now: { .now }, logger: logger)
      let publisher = try await EventPublisher(
        log: log, spool: spool, accepted: accepted, patience: .milliseconds(2), deadline: .seconds(300),
        pace: RetryPace(first: .milliseconds(1), longest: .milliseconds(8)),
        metrics: PublicationMetrics(MetricsRegistry()), logger: logger)
      let next = try Self.next(directory)
      await withTaskGroup { group in
        group.addTask(executorPreference: Loop.executor) { await publisher.drain() }
        if last > 0 {
          for person in 0..<people {
            group.addTask(executorPreference: Loop.executor) { await log.publish(person, next[person], publisher) }
          }
        } else {
          // Nobody says when the last one has gone.
          while spool.depth > 0 { do { try await Loop.sleep(for: .milliseconds(5)) } catch { break } }
          await publisher.close(by: .now)
        }
      }
      return 0
    } catch {
      DurableWriter.complain("\(error)")
    }
  }

  /// What each is to send next: what was answered for is not sent again.
  private static func next(_ directory: String) throws -> [Int] {
    var next = [Int](repeating: 0, count: people)
    for line in try lines("\(directory)/answered") {
      let parts = line.split(separator: "-").compactMap { Int($0) }
      if parts.count == 2 { next[parts[0]] = parts[1] + 1 }
    }
    return next
  }

  private static func lines(_ path: String) throws -> [Substring] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    var (text, chunk): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 1 << 16))
    while case let count = unsafe read(descriptor, &chunk, chunk.count), count > 0 { text += chunk.prefix(count) }
    Glibc.close(descriptor)
    return String(decoding: text, as: UTF8.self).split(separator: "\n")
  }

  private func publish(_ person: Int, _ first: Int, _ publisher: EventPublisher) async {
    guard let team = TeamID("A1B2C3D4E5"), let audience = ClientID("com.example.app") else { return }
    for number in first... {
      let name = "\(person)-\(number)"
      guard let id = EventID(name) else { return }
      let headers = [("ce_id", name), ("ce_team", team.text), ("ce_audience", audience.text)]
      let record = EventRecord(
        topic: .accountEvents, key: Array("\(person)".utf8), value: Array(name.utf8),
        headers: headers.map { EventRecord.Header(name: $0.0, value: Array($0.1.utf8)) })
      let mark = AcceptedEvents.Mark(of: id, on: .accountEvents, team: team, audience: audience)
      do throws(EventLogError) {
        _ = try await publisher.publish(record, as: mark)
      } catch {
        DurableWriter.complain("\(error)")
      }
      step()
      write(name, to: answers)
      step()
    }
  }

  private func step() {
    steps += 1
    if steps == last { raise(SIGKILL) }
  }

  private func write(_ line: String, to file: CInt) {
    let bytes = Array("\(line)\n".utf8)
    if unsafe Glibc.write(file, bytes, bytes.count) != bytes.count { DurableWriter.complain("it cannot be written") }
  }

  func append(_ record: EventRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void) {
    let fate = Int.random(in: 0..<10)
    let failure = EventLogError(fate < 3 ? .unavailable : .uncertain, reason: "told", detail: "told to")
    step()
    if fate >= 3 { write(String(decoding: record.value, as: UTF8.self), to: file) }
    step()
    let result: Result<EventLogPosition, EventLogError> =
      fate < 4 ? .failure(failure) : .success(EventLogPosition(partition: 0, offset: 0))
    Task(executorPreference: Loop.executor) { await self.tell(result, isLate: fate == 2 || fate == 5, report) }
  }

  private func tell(
    _ result: Result<EventLogPosition, EventLogError>, isLate: Bool,
    _ report: @Loop (Result<EventLogPosition, EventLogError>) -> Void
  ) async {
    if isLate {
      // This is how long it takes.
      do { try await Loop.sleep(for: .milliseconds(4)) } catch { DurableWriter.complain("\(error)") }
    }
    report(result)
    step()
  }

  func append(_ record: KafkaRecord, then report: @escaping @Loop (Result<EventLogPosition, EventLogError>) -> Void) {
    DurableWriter.complain("these are events alone")
  }

  func check() async throws(EventLogError) {}

  func close(within patience: Duration) async {}
}
