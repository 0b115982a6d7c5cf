import AccountEvents
import AccountStore
import EventLoop
import HTTPServer
import Kafka
import Telemetry

/// The streams of `GET /v1/events`: what happens to accounts of a caller's apps, as server-sent events (WHATWG HTML, §9.2).
///
/// Whatever a stream tells stands before the position that it names, so that a stream which is resumed there repeats nothing
/// and leaves nothing out.
@Loop
final class EventStreams {
  /// How many streams there may be: of one caller, and of all together.
  struct Limits: Sendable {
    let perCaller: Int
    let all: Int

    /// Limits where there may be so many connections, and so many descriptors for them: all streams have half.
    init(perCaller: Int, connections: Int, descriptors: Int) {
      self.perCaller = perCaller
      all = max(1, min(connections, DescriptorLimit.connections(within: descriptors)) / 2)
    }
  }

  /// After so long a stream says at least that it is there.
  private static let heartbeat = Duration.seconds(15)
  /// How long a piece may take to leave.
  private static let patience = Duration.seconds(30)
  /// After how many milliseconds a reader is to come back.
  private static let retry = 2000
  /// Longer pieces are sent before there is more.
  private static let mostText = 65_536

  private let feed: EventFeed
  private let identify: @Sendable (Account) -> AccountID
  private let sight: AccountSight
  private let limits: Limits
  private let metrics: EventStreamMetrics
  private let logger: Logger
  private var open: [String: Int] = [:] {
    didSet {
      feed.streams = open.values.reduce(0, +)
      metrics.open.set(Double(feed.streams))
    }
  }
  private var isEnding = false

  /// Streams from a feed; `identify` says an account's id.
  init(
    _ feed: EventFeed, _ sight: AccountSight, limits: Limits, metrics: EventStreamMetrics, logger: Logger,
    identify: @escaping @Sendable (Account) -> AccountID
  ) {
    (self.feed, self.sight, self.limits, self.identify) = (feed, sight, limits, identify)
    (self.metrics, self.logger) = (metrics, logger)
  }

  /// Reads what is told, until the task is cancelled.
  func run() async { await feed.run() }

  /// Ends all streams, each behind what it has told.
  func end() {
    isEnding = true
    feed.end()
  }

  /// A caller's place among the streams, for as long as it is held.
  @Loop
  private final class Place {
    let caller: AccountsSettings.Caller
    private let streams: EventStreams

    init(_ streams: EventStreams, _ caller: AccountsSettings.Caller) {
      (self.streams, self.caller) = (streams, caller)
      streams.open[caller.name, default: 0] += 1
    }

    isolated deinit { streams.leave(caller.name) }
  }

  private func leave(_ caller: String) {
    let left = open[caller, default: 1] - 1
    open[caller] = left > 0 ? left : nil
  }

  /// The answer to a caller that has read as far as `last` says; where that is nil, from where `query` says. `isHead`: only
  /// its head is sent, for which nothing is read.
  func stream(
    to caller: AccountsSettings.Caller, after last: String?, _ query: String?, isHead: Bool
  ) async throws(Problem) -> HTTPResponse {
    let beginning = try Self.beginning(query)
    let position = last.flatMap { EventPosition($0) }
    if last != nil, position == nil {
      throw Problem(.malformed, "Last-Event-ID is the id of an event of this stream.")
    }
    if isEnding { throw .unavailable("The program ends.") }
    guard open[caller.name, default: 0] < limits.perCaller else {
      throw Problem(.tooManyRequests, "The caller has \(limits.perCaller) streams already.", retryAfter: 10)
    }
    guard feed.streams < limits.all else { throw .unavailable("There are too many streams already.", retryAfter: 10) }
    if isHead { return response { _ in } }
    let place = Place(self, caller)
    let start: EventCursor
    if let position {
      start = EventCursor(position)
    } else {
      do throws(KafkaError) { start = try await feed.cursor(at: beginning) } catch {
        logger.warning("a stream of events cannot begin", error.metadata)
        throw .unavailable("The events cannot be read at the moment.")
      }
    }
    return response { [self] writer in try await tell(place, from: start, writer) }
  }

  private func response(_ produce: @escaping @Loop @Sendable (HTTPBodyWriter) async throws -> Void) -> HTTPResponse {
    HTTPResponse(
      status: 200, headers: [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")],
      body: .endlessStream(patience: Self.patience, produce))
  }

  /// Where a stream begins that has no `Last-Event-ID`: `from=now`, `from=beginning` or `from=TIME`.
  private static func beginning(_ query: String?) throws(Problem) -> EventFeed.Beginning {
    guard let query else { return .now }
    let parts = query.split(separator: "=", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == "from", let value = String(percentDecoding: parts[1]) else {
      throw malformedQuery
    }
    switch value {
    case "now": return .now
    case "beginning": return .oldest
    default:
      guard let time = Timestamp(rfc3339: value) else { throw malformedQuery }
      return .time(time)
    }
  }

  private static let malformedQuery = Problem(.malformed, "The query is from=now, from=beginning or from=TIME.")

  /// Tells what happens until the caller goes or the program ends.
  private func tell(_ place: Place, from start: EventCursor, _ writer: HTTPBodyWriter) async throws {
    let caller = place.caller
    var cursor = start
    var named = cursor.position
    try await writer.write(Array("retry: \(Self.retry)\nid: \(named.text)\n\n".utf8))
    var beat = MonotonicTime.now + Self.heartbeat
    while !isEnding {
      let page = await feed.next(&cursor, until: beat)
      try Task.checkCancellation()
      cursor.position = page.start
      var text = ""
      if page.isGap {
        metrics.gaps.increment()
        logger.notice("a stream of events has a gap", ["accounts.caller": .string(caller.name)])
        text = ToldEvent.gap(upTo: page.start)
        named = page.start
      }
      for record in page.records {
        cursor.position.pass(record.offset, of: record.partition)
        guard let event = record.event,
          let told = ToldEvent(event, for: caller.clients, seenBy: sight, identify: identify)
        else { continue }
        metrics.told[told.name].increment()
        text += told.text(at: cursor.position)
        named = cursor.position
        if text.utf8.count > Self.mostText {
          try await writer.write(Array(text.utf8))
          text = ""
        }
      }
      if text.isEmpty {
        guard beat <= .now else { continue }
        // An id without data is no event: it says how far the stream is, behind what is none of the caller's.
        text = cursor.position == named ? ":\n\n" : "id: \(cursor.position.text)\n\n"
        named = cursor.position
      }
      try await writer.write(Array(text.utf8))
      beat = .now + Self.heartbeat
    }
  }
}

/// What operators watch of the streams. docs/events.md names it; renaming it breaks dashboards.
@Loop
final class EventStreamMetrics {
  /// Streams that are open.
  let open: Gauge
  /// Events that were told.
  let told: CounterFamily<ToldEvent.Name>
  /// Streams that were told of a gap.
  let gaps: Counter

  nonisolated init(_ registry: MetricsRegistry) {
    open = registry.gauge("siwa_accounts_event_streams", "Streams of events that are open.")
    told = registry.counters("siwa_accounts_events_told_total", "Events that streams were told, by name.", by: "event")
    gaps = registry.counter(
      "siwa_accounts_event_gaps_total",
      "Times that a stream could not go on where it was: Kafka no longer has what came next.")
  }
}
