import AccountEvents
import AccountServices
import EventLoop
import Synchronization
import Telemetry
import TestSupport
import Testing

/// A directory for spools, with everything around them in a test's hand.
@Loop
final class SpoolRig {
  nonisolated static let start: Int64 = 1_767_225_600_000

  let files = TemporaryDirectory()
  let log = CapturedLog()
  private(set) var registry = MetricsRegistry()
  private nonisolated let time = Mutex(start)

  /// Where the spool is.
  var directory: String { files.path + "/spool" }

  /// Opens the spool, runs `body` with it, and closes it.
  func open<Value>(
    _ directory: String? = nil, limit: Int = 1 << 30, probing: Duration = Spool.probing,
    _ body: @Loop (Spool) async throws -> Value
  ) async throws -> Value {
    registry = MetricsRegistry()
    let spool = try await Spool.open(
      directory: directory ?? self.directory, limit: limit, probing: probing, now: { [self] in now },
      registry: registry, logger: log.logger())
    let result: Result<Value, any Error>
    do { result = .success(try await body(spool)) } catch { result = .failure(error) }
    await spool.close()
    return try result.get()
  }

  /// The error with which the spool does not open.
  func refusal(_ directory: String? = nil) async throws -> SpoolError? {
    do {
      try await open(directory) { _ in }
      return nil
    } catch let error as SpoolError {
      return error
    }
  }

  /// Lets time pass.
  func advance(by duration: Duration) { time.withLock { $0 += Int64(duration / .milliseconds(1)) } }

  /// The value of a metric, as it is rendered.
  func metric(_ name: String) -> String? { registry.value(of: name) }

  private nonisolated var now: Timestamp { time.withLock { Timestamp(milliseconds: $0) } ?? .now }

  /// A record as the ingress makes them; `number` tells it from others.
  nonisolated static func record(_ number: Int, of person: String? = "ada", size: Int = 100) -> EventRecord {
    EventRecord(
      topic: person == nil ? .quarantine : .accountEvents, key: person.map { Array("A1B2C3D4E5/\($0)".utf8) },
      value: Array(repeating: UInt8(ascii: "v"), count: size),
      headers: [
        EventRecord.Header(name: "ce_id", value: Array("event-\(number)".utf8)),
        EventRecord.Header(name: "ce_type", value: Array("com.apple.siwa.consent-revoked.v1".utf8)),
        EventRecord.Header(name: "empty", value: []),
      ])
  }
}

extension EventRecord {
  /// The number that `SpoolRig.record` was given.
  var number: Int? { Int(String(decoding: headers[0].value, as: UTF8.self).dropFirst("event-".count)) }
}

extension Spool {
  /// What inserting the record comes to.
  func outcome(of record: EventRecord) async -> Result<Int64, SpoolError> {
    do throws(SpoolError) { return .success(try await insert(record)) } catch { return .failure(error) }
  }
}

extension Result where Failure == SpoolError {
  /// Why it failed.
  var error: SpoolError? {
    if case .failure(let error) = self { error } else { nil }
  }
}

extension MetricsRegistry {
  /// The value of a metric, as it is rendered.
  func value(of name: String) -> String? {
    let lines = String(decoding: render(), as: UTF8.self).split(separator: "\n")
    return lines.first { $0.hasPrefix("\(name) ") }?.split(separator: " ").last.map(String.init)
  }
}
