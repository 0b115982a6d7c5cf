import AccountEvents
import AccountServices
import EventLoop
import Kafka
import TestSupport
import Testing

/// A log in memory that does what a test tells it to. An append after its end is a failure of the test.
@Loop
final class MemoryLog: EventLog {
  typealias Report = @Loop (Result<EventLogPosition, EventLogError>) -> Void

  /// The records of events that stand on it, in their order.
  private(set) var records: [EventRecord] = []
  /// The records of signing keys that were appended, each with the number of events before it.
  private(set) var signingKeys: [(record: EventRecord, eventsBefore: Int)] = []
  /// Why a record is not taken; nil where it is.
  var fault: (EventRecord) -> EventLogError? = { _ in nil }
  /// Why a record is not taken that is appended alone, nil where it is; the same as otherwise where this is nil.
  var faultAlone: ((EventRecord) -> EventLogError?)?
  /// Whether a record stands on it although its append is reported to have failed.
  var takesWhatItReportsAsUncertain = false
  /// Why the log is not ready; nil while it is.
  var unreadiness: EventLogError?
  private(set) var isClosed = false
  /// Which appends wait.
  private var holds: (EventRecord) -> Bool = { _ in false }
  private var observer: CheckedContinuation<Void, Never>?
  private var held: [(record: EventRecord, report: Report)] = []

  /// Lets appends wait from now on, until `release`: all, or some.
  func hold(where holds: @escaping (EventRecord) -> Bool = { _ in true }) { self.holds = holds }

  /// Lets those that wait go on, and all that come.
  func release() {
    holds = { _ in false }
    while !held.isEmpty { releaseFirst() }
  }

  /// Lets the oldest that waits go on.
  func releaseFirst() {
    let (record, report) = held.removeFirst()
    settle(record, report)
  }

  /// Holds and releases in turn, until so many records stand on it.
  func flicker(until count: Int) async {
    while records.count < count {
      hold()
      await turn()
      release()
      await turn()
    }
  }

  /// What waits, in its order.
  var waiting: [EventRecord] { held.map(\.record) }

  /// Waits until an append waits.
  func untilHeld() async {
    await withCheckedContinuation { continuation in
      if held.isEmpty { observer = continuation } else { continuation.resume() }
    }
  }

  func append(_ record: EventRecord, then report: @escaping Report) {
    if isClosed { Issue.record("an append to a log that was closed") }
    guard holds(record) else { return settle(record, report) }
    held.append((record, report))
    observer?.resume()
    observer = nil
  }

  func append(alone record: EventRecord, then report: @escaping Report) {
    if isClosed { Issue.record("an append to a log that was closed") }
    settle(record, (faultAlone ?? fault)(record), report)
  }

  func append(_ record: KafkaRecord, then report: @escaping Report) {
    Issue.record("an ingress says nothing but events")
  }

  private func settle(_ record: EventRecord, _ report: Report) {
    settle(record, isClosed ? .sample(.uncertain) : fault(record), report)
  }

  private func settle(_ record: EventRecord, _ fault: EventLogError?, _ report: Report) {
    if fault == nil || (fault?.outcome == .uncertain && takesWhatItReportsAsUncertain) {
      if record.topic == .signingKeys {
        signingKeys.append((record, eventsBefore: records.count))
      } else {
        records.append(record)
      }
    }
    if let fault { return report(.failure(fault)) }
    report(.success(EventLogPosition(partition: 0, offset: Int64(records.count - 1))))
  }

  func check() async throws(EventLogError) {
    if let unreadiness { throw unreadiness }
  }

  func close(within patience: Duration) async {
    isClosed = true
    release()
  }
}

extension EventLogError {
  /// An error of the given outcome.
  static func sample(_ outcome: Outcome) -> EventLogError {
    EventLogError(outcome, reason: "sample", detail: "told to")
  }

  /// A record, or the batch that it was sent in, is too large.
  static let tooLarge = EventLogError(.refused, reason: "recordTooLarge", detail: "told to")
}
