import AccountEvents
import EventLoop
import Kafka
import Telemetry

/// The topic of all events, for all streams of the process: one reader follows its end while there are streams, and another
/// one reads what came before, for those that are behind.
@Loop
final class EventFeed {
  /// Where a stream begins that has read nothing.
  enum Beginning: Sendable, Hashable {
    /// With what happens from now on.
    case now
    /// With the oldest record that is kept.
    case oldest
    /// With the first record that was made at that time or later.
    case time(Timestamp)
  }

  /// How much is kept, and how long things may take.
  struct Bounds: Sendable {
    /// How many records are kept for all streams; a stream takes `page` of them at once.
    var newest = 4096, page = 256
    /// How many records are read at once.
    var batch = 1024
    /// How long a stream waits to be told where the end of the topic is.
    var patience = Duration.seconds(10)
    /// How long the cluster is left alone when it could not be read from.
    var pause = Duration.seconds(1)
    /// How often it is asked whether there are more partitions.
    var survey = Duration.seconds(60)
    /// How often the reader of what came before is looked at: where nobody uses it, it asks the brokers a hundred times a
    /// second.
    var rest = Duration.seconds(5)
  }

  private let source: @Loop () throws(KafkaError) -> any PartitionSource
  private let earlier: EarlierEvents
  private let bounds: Bounds
  private let logger: Logger
  private let bell = Bell()
  private var newest: NewestEvents
  private var isEnding = false
  /// Until when earlier records are not asked for.
  private var earlierPause = MonotonicTime.now
  /// What was last said to have failed; nil where nothing fails.
  private var failure: KafkaError.Code?

  /// How many streams there are: nothing is read for none.
  var streams = 0 { didSet { bell.ring() } }

  /// A feed from what `source` makes, which is asked again after a failure; what came before is read from what
  /// `earlierSource` makes.
  init(
    _ source: @escaping @Loop () throws(KafkaError) -> any PartitionSource,
    earlierSource: (@Loop () throws(KafkaError) -> any PartitionSource)? = nil, bounds: Bounds = Bounds(),
    logger: Logger
  ) {
    (self.source, self.bounds, self.logger) = (source, bounds, logger)
    earlier = EarlierEvents(earlierSource ?? source)
    newest = NewestEvents(keeping: bounds.newest)
  }

  /// Has all streams return from `next`.
  func end() {
    isEnding = true
    bell.ring()
  }

  // MARK: For streams

  /// Where a stream begins. Throws where the cluster does not say it in time.
  func cursor(at beginning: Beginning) async throws(KafkaError) -> EventCursor {
    let position: EventPosition
    var epoch = newest.epoch
    switch beginning {
    case .now: (position, epoch) = try await endPosition()
    case .oldest: position = try await self.position { $0.held.lowerBound }
    case .time(let time):
      // Of a record that is newer than the millisecond before.
      let before = time.milliseconds - 1
      position = try await self.position(newerThan: before) { $0.firstNewer[before] ?? $0.end }
    }
    var cursor = EventCursor(position)
    if epoch == newest.epoch { cursor.epoch = epoch }
    return cursor
  }

  /// What comes next; nothing at `time`, once it ends or where the task is cancelled.
  func next(_ cursor: inout EventCursor, until time: MonotonicTime) async -> EventPage {
    while true {
      let rings = bell.rings
      if let page = newest.page(for: &cursor, upTo: bounds.page) {
        if page.isGap || !page.records.isEmpty { return page }
        if !newest.hasTakenAll(cursor) { continue }
      }
      guard !isEnding, !Task.isCancelled, .now < time else { return EventPage(start: cursor.position) }
      let isPaused = .now < earlierPause
      guard cursor.number == nil, !isPaused, earlier.takeTurn() else {
        await bell.wait(since: rings, until: isPaused ? min(time, earlierPause) : time)
        continue
      }
      let epoch = newest.epoch
      if let page = await earlierPage(cursor.position, in: epoch, until: min(time, .now + bounds.pause)) {
        // Read in the midst of a change: what was read before is compared with the topic as it is now.
        guard epoch == newest.epoch else { continue }
        cursor.epoch = epoch
        if page.isGap || !page.records.isEmpty { return page }
        // There may be partitions that were not known before.
        cursor.position = page.start
      }
    }
  }

  private func earlierPage(
    _ position: EventPosition, in epoch: Int, until time: MonotonicTime
  ) async -> EventPage? {
    do throws(KafkaError) {
      let page = try await earlier.page(behind: position, in: epoch, upTo: bounds.batch, until: time)
      // Those who wait for their turn go on, and whatever else is on the loop.
      bell.ring()
      await Loop.nextTurn()
      return page
    } catch {
      bell.ring()
      logger.debug("earlier events could not be read", error.metadata)
      earlierPause = .now + bounds.pause
      return nil
    }
  }

  /// The end of the topic as the reader that follows it has it, and in which epoch.
  private func endPosition() async throws(KafkaError) -> (EventPosition, epoch: Int) {
    let limit = MonotonicTime.now + bounds.patience
    while true {
      let rings = bell.rings
      if let end = newest.end { return (end, newest.epoch) }
      guard !isEnding, !Task.isCancelled, .now < limit else {
        throw KafkaError(.brokerUnavailable, detail: "the end of \(Topic.accountEvents) is not known")
      }
      await bell.wait(since: rings, until: limit)
    }
  }

  private func position(
    newerThan time: Int64? = nil, _ offset: (PartitionExtent) -> Int64
  ) async throws(KafkaError) -> EventPosition {
    let reader = try source()
    let result: Result<[Int32: PartitionExtent], KafkaError>
    do throws(KafkaError) { result = .success(try await reader.extents(newerThan: time)) } catch {
      result = .failure(error)
    }
    await reader.close()
    guard let position = EventPosition(try result.get().mapValues(offset)) else { throw .noSuchPosition }
    return position
  }

  // MARK: Reading

  /// Follows the topic while there are streams, until the task is cancelled.
  func run() async {
    while !Task.isCancelled {
      let rings = bell.rings
      guard streams > 0 else {
        await bell.wait(since: rings, until: .distantFuture)
        continue
      }
      do throws(KafkaError) { try await follow() } catch { note(error) }
      newest.forget()
      bell.ring()
      if streams == 0, !earlier.isBusy { earlier.close() }
      do { try await Loop.sleep(for: bounds.pause) } catch { return }
    }
  }

  private func follow() async throws(KafkaError) {
    let reader = try source()
    let result: Result<Void, KafkaError>
    do throws(KafkaError) { result = .success(try await follow(reader)) } catch { result = .failure(error) }
    // Streams do not wait for it: whatever keeps it, they are told on.
    Task(executorPreference: Loop.executor) { await reader.close() }
    try result.get()
  }

  /// Returns where the topic is to be asked anew where it ends: streams then read on from where they are.
  private func follow(_ reader: any PartitionSource) async throws(KafkaError) {
    // An epoch of its own for what is read until the answer.
    newest.forget()
    guard var next = newest.begin(holding: try await reader.extents().mapValues(\.held)) else { throw .noSuchPosition }
    try reader.assign(next.starts)
    failure = nil
    bell.ring()
    var (nextSurvey, nextRest) = (MonotonicTime.now + bounds.survey, MonotonicTime.now + bounds.rest)
    while streams > 0, !Task.isCancelled {
      do throws(KafkaError) {
        for record in try await reader.next(upTo: bounds.batch, until: min(nextSurvey, nextRest)) {
          let read = ReadEvent(record)
          // Nothing is passed over that nobody has looked for.
          guard read.offset == next[read.partition] else { return }
          next.pass(read.offset, of: read.partition)
          newest.append(read)
        }
        bell.ring()
        // Whatever else is on the loop goes on, however much there is to read.
        await Loop.nextTurn()
        if .now >= nextRest {
          nextRest = .now + bounds.rest
          earlier.rest()
        }
        guard .now >= nextSurvey else { continue }
        nextSurvey = .now + bounds.survey
        if try await reader.partitionCount() != next.offsets.count { return }
        failure = nil
      } catch {
        if error.isFatal { throw error }
        note(error)
        do { try await Loop.sleep(for: bounds.pause) } catch { return }
      }
    }
  }

  /// Says once that the topic cannot be read.
  private func note(_ error: KafkaError) {
    guard failure != error.code else { return }
    failure = error.code
    logger.warning("streams of events wait for Kafka", error.metadata)
  }
}
