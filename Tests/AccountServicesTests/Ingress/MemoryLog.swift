import AccountEvents
import AccountServices
import EventLoop
import Testing

/// A log in memory that does what a test tells it to. An append after its end is a failure of the test.
@Loop
final class MemoryLog: EventLog {
  /// The records of events that were appended, in their order.
  private(set) var records: [EventRecord] = []
  /// The records of signing keys that were appended, each with the number of events before it.
  private(set) var signingKeys: [(record: EventRecord, eventsBefore: Int)] = []
  /// Why a record is not taken; nil where it is.
  var fault: (EventRecord) -> EventLogError? = { _ in nil }
  /// Why the log is not ready; nil while it is.
  var unreadiness: EventLogError?
  private(set) var isClosed = false
  private var isHolding = false
  private var held: [CheckedContinuation<Void, Never>] = []
  private var observer: CheckedContinuation<Void, Never>?

  /// Lets every append wait from now on, until `release`.
  func hold() { isHolding = true }

  /// Lets those that wait go on.
  func release() {
    isHolding = false
    for waiting in held { waiting.resume() }
    held = []
  }

  /// Waits until an append waits.
  func untilHeld() async {
    if held.isEmpty { await withCheckedContinuation { observer = $0 } }
  }

  func append(_ record: EventRecord) async throws(EventLogError) -> EventLogPosition {
    if isClosed { Issue.record("an append to a log that was closed") }
    if isHolding {
      await withCheckedContinuation { continuation in
        held.append(continuation)
        observer?.resume()
        observer = nil
      }
      if isClosed { throw .sample(.uncertain) }
    }
    if let fault = fault(record) { throw fault }
    if record.topic == .signingKeys {
      signingKeys.append((record, eventsBefore: records.count))
      return EventLogPosition(partition: 0, offset: Int64(signingKeys.count - 1))
    }
    records.append(record)
    return EventLogPosition(partition: 0, offset: Int64(records.count - 1))
  }

  func check() async throws(EventLogError) {
    if let unreadiness { throw unreadiness }
  }

  func close(within patience: Duration) async -> Int {
    isClosed = true
    defer { release() }
    return held.count
  }
}

extension EventLogError {
  /// An error of the given outcome.
  static func sample(_ outcome: Outcome) -> EventLogError {
    EventLogError(outcome, reason: "sample", detail: "told to")
  }
}
