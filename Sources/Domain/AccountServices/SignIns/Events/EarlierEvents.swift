import AccountEvents
import EventLoop
import Kafka

/// Reads records that are not among the recent ones any more, a page for one stream after the other, by one reader.
@Loop
final class EarlierEvents {
  private let source: @Loop () throws(KafkaError) -> any PartitionSource
  private var reader: (any PartitionSource)?
  /// Where the reader is, and in which epoch the topic was asked; nil where it has to be asked first.
  private var place: (position: EventPosition, epoch: Int)?
  /// Whether somebody has the turn.
  private(set) var isBusy = false
  private var isUsed = false

  /// Nothing is connected before somebody asks.
  init(_ source: @escaping @Loop () throws(KafkaError) -> any PartitionSource) { self.source = source }

  /// Takes the turn, which `page` gives back. False where somebody else has it.
  func takeTurn() -> Bool {
    if isBusy { return false }
    (isBusy, isUsed) = (true, true)
    return true
  }

  /// The records behind a position, `most` at most; none where there are none by `time`. For whoever has the turn. In another
  /// epoch than before, the topic is asked whether it has been at that position, and which partitions it has.
  func page(
    behind position: EventPosition, in epoch: Int, upTo most: Int, until time: MonotonicTime
  ) async throws(KafkaError) -> EventPage {
    defer { isBusy = false }
    do throws(KafkaError) {
      return try await read(behind: position, in: epoch, upTo: most, until: time)
    } catch {
      place = nil
      if error.isFatal { close() }
      throw error
    }
  }

  /// Closes the reader where nobody has had the turn since the last call.
  func rest() {
    if !isUsed, !isBusy { close() }
    isUsed = false
  }

  /// Closes the reader, which is made anew for whoever asks. Not while somebody has the turn.
  func close() {
    guard let idle = reader else { return }
    (reader, place) = (nil, nil)
    // Nobody waits for it, whatever keeps it.
    Task(executorPreference: Loop.executor) { await idle.close() }
  }

  private func connected() throws(KafkaError) -> any PartitionSource {
    if let reader { return reader }
    let reader = try source()
    self.reader = reader
    return reader
  }

  private func read(
    behind position: EventPosition, in epoch: Int, upTo most: Int, until time: MonotonicTime
  ) async throws(KafkaError) -> EventPage {
    let reader = try connected()
    var page = EventPage(start: position)
    if place?.position != position || place?.epoch != epoch {
      place = nil
      guard let resumed = position.resumed(in: try await reader.extents().mapValues(\.held)) else {
        throw .noSuchPosition
      }
      try reader.assign(resumed.position.starts)
      place = (resumed.position, epoch)
      (page.start, page.isGap) = resumed
      if page.isGap { return page }
    }
    var next = page.start
    var held: [Int32: PartitionExtent]?
    for record in try await reader.next(upTo: most, until: time) {
      let (partition, offset) = (record.position.partition, record.position.offset)
      if offset > next[partition] {
        // Either nothing was ever there, or retention has taken it: then the next page says so.
        if held == nil { held = try await reader.extents() }
        if let first = held?[partition]?.first, first > next[partition] { held = nil }
      }
      // Where offsets begin again, the topic is asked, too.
      guard offset >= next[partition], offset == next[partition] || held != nil else {
        place = nil
        return page
      }
      next.pass(offset, of: partition)
      page.records.append(ReadEvent(record))
    }
    place = (next, epoch)
    return page
  }
}

extension PartitionSource {
  /// How long the cluster may take to say what the topic holds.
  private static var limit: Duration { .seconds(5) }

  /// How many partitions the topic of all events has.
  func partitionCount() async throws(KafkaError) -> Int {
    try await partitions(of: Topic.accountEvents.name, within: Self.limit).count
  }

  /// What each partition of the topic of all events holds, and of each the first record that is newer than `time`. Throws
  /// where it cannot be said of all.
  func extents(newerThan time: Int64? = nil) async throws(KafkaError) -> [Int32: PartitionExtent] {
    let partitions = try await partitions(of: Topic.accountEvents.name, within: Self.limit)
    let times: Set<Int64> = time.map { [$0] } ?? []
    let extents = try await extents(
      of: Dictionary(uniqueKeysWithValues: partitions.map { ($0, times) }), within: Self.limit)
    guard extents.count == partitions.count else {
      throw KafkaError(.brokerUnavailable, detail: "a partition of \(Topic.accountEvents) has no broker")
    }
    return Dictionary(uniqueKeysWithValues: extents.map { ($0.key.partition, $0.value) })
  }
}

extension PartitionExtent {
  /// From the first record to behind the last one.
  var held: Range<Int64> { min(first, end)..<end }
}

extension EventPosition {
  /// Where a reader begins that goes on here.
  var starts: [PartitionStart] {
    offsets.enumerated().map { partition, offset in
      PartitionStart(topic: Topic.accountEvents.name, partition: Int32(partition), at: .offset(offset))
    }
  }
}

extension ReadEvent {
  /// What a record says.
  init(_ record: ConsumedRecord) {
    self.init(
      partition: record.position.partition, offset: record.position.offset, event: Self.event(record.value))
  }

  private static func event(_ value: [UInt8]?) -> AccountEvent? {
    guard let value else { return nil }
    do throws(EventDecodingError) {
      return try AccountEvent(decoding: value)
    } catch {
      return nil  // the consumers put it aside, and say so
    }
  }
}

extension KafkaError {
  static let noSuchPosition = KafkaError(
    .other, detail: "the partitions of \(Topic.accountEvents) are not of the form that positions have")
}
