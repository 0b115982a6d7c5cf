import AccountEvents
import AppleID
import Cryptography
import EventLoop
import JSON
import Synchronization
import Telemetry
import TestSupport
import Testing

/// `AppleKeys` with everything around it in a test's hand.
@Loop
final class KeysRig {
  /// What the system's clock says.
  final class Calendar: Sendable {
    private let time = Mutex(Forge.now)
    var now: Timestamp { time.withLock { $0 } }
    func pass(_ duration: Duration) { time.withLock { $0 = $0 + duration } }
  }

  let source = ScriptedSource()
  let alarm = ManualAlarm()
  let calendar = Calendar()
  let log = CapturedLog()
  let registry = MetricsRegistry()
  let keys: AppleKeys
  private var run: Task<Void, Never>?

  /// Keys that are not running yet: refreshed after an hour, looked up a minute after a fetch, tried again after 2, 4, 8,
  /// 16, 30, 30 … seconds.
  init(cache: AppleKeysCache? = nil, jitter: Double = 0) {
    keys = AppleKeys(
      from: source, cache: cache,
      pace: FetchPace(
        refresh: .seconds(3600), pause: .seconds(60), firstRetry: .seconds(2), longestRetry: .seconds(30)),
      alarm: alarm, now: { [calendar] in calendar.now }, jitter: { jitter },
      metrics: AppleKeysMetrics(registry, now: { [calendar] in calendar.now }), logger: log.logger())
  }

  /// Starts `run` and answers its first fetch.
  func start(_ answer: Result<[UInt8], AppleKeysFailure>) async {
    run = Task { await keys.run() }
    await settle(answer)
  }

  /// Answers the fetch that is on its way, or the next one, and waits until nothing is left to do.
  func settle(_ answer: Result<[UInt8], AppleKeysFailure>) async {
    await source.untilAsked()
    source.answer(answer)
    await alarm.untilSet()
  }

  func pass(_ duration: Duration) {
    calendar.pass(duration)
    alarm.advance(by: duration)
  }

  /// Asks without waiting for the answer; returns when the question is put.
  func ask(_ id: String) async -> Task<KeyLookup, Never> {
    let (waiting, fetches) = (keys.waiting, source.fetches)
    let task = Task { await lookUp(id) }
    while keys.waiting == waiting, source.fetches == fetches { await Task.yield() }
    return task
  }

  func lookUp(_ id: String) async -> KeyLookup { await keys.lookUp(Self.id(id)) }

  func stop() async {
    run?.cancel()
    await run?.value
  }

  var ids: [String] { keys.current.keyIDs.map(\.text) }

  /// The line of a metric, or what follows its name.
  func metric(_ name: String) -> String? {
    String(decoding: registry.render(), as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name + " ") }
      .map { String($0.dropFirst(name.count + 1)) }
  }

  func failures(_ reason: AppleKeysFailure.Reason) -> String? {
    metric("siwa_apple_keys_failures_total{reason=\"\(reason.rawValue)\"}")
  }

  static func id(_ text: String) -> KeyID {
    guard let id = KeyID(text) else { preconditionFailure("\(text) is no kid") }
    return id
  }

  /// A set as Apple answers it, with keys of these names.
  nonisolated static func set(_ ids: String...) -> [UInt8] { set(ids.map { ($0, Forge.key) }) }

  /// A set as Apple answers it, with these keys of these names.
  nonisolated static func set(_ keys: KeyValuePairs<String, RSAPrivateKey>) -> [UInt8] { set(keys.map { ($0, $1) }) }

  nonisolated private static func set(_ keys: [(String, RSAPrivateKey)]) -> [UInt8] {
    let written: [JSONValue] = keys.map { id, key in
      do { return try Forge.jwk(id, key) } catch { preconditionFailure("\(error)") }
    }
    return (["keys": .array(written)] as JSONValue).bytes
  }
}

extension KeyLookup {
  /// The lookup in a word, for comparisons.
  var summary: String {
    switch self {
    case .found(let set): "found in \(set.keyIDs.map(\.text).joined(separator: " "))"
    case .absent: "absent"
    case .unavailable: "unavailable"
    }
  }
}
