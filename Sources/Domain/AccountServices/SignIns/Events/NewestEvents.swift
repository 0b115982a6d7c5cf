import AccountEvents

/// A record of the topic of all events. What is no event of a type that is known was read all the same, and is told to nobody.
struct ReadEvent: Sendable, Hashable {
  let partition: Int32
  let offset: Int64
  let event: AccountEvent?
}

/// Some records behind a position.
struct EventPage: Sendable, Hashable {
  /// The position before the records: where there is a gap, the one behind it.
  var start: EventPosition
  /// Whether the topic does not hold any more what came next.
  var isGap = false
  /// The records, those of a partition in their order.
  var records: [ReadEvent] = []
}

/// Where a stream is.
struct EventCursor: Sendable {
  /// What it has read.
  var position: EventPosition
  /// In which epoch of `NewestEvents` the topic has been at that position; nil of a mere word of somebody who asks.
  var epoch: Int?
  /// The number of its next record among the recent ones; nil where it is not among them.
  fileprivate(set) var number: Int?

  init(_ position: EventPosition) { self.position = position }
}

/// The newest records, from which all streams take theirs that are not far behind.
///
/// No stream has a queue of its own: one that is slow falls behind what is kept, and reads on in Kafka.
struct NewestEvents: Sendable {
  private let most: Int
  private var records: [ReadEvent] = []
  /// The number of the first record that is kept.
  private var first = 0
  private var start: EventPosition?
  /// What the partitions held when it was begun anew, as the cluster was asked in the epoch before.
  private var held: [Int32: Range<Int64>] = [:]
  /// Counts how often it was begun anew, and given up: the topic may have been another one until then.
  private(set) var epoch = 0
  /// The position behind the last record; nil while nothing is read.
  private(set) var end: EventPosition?

  /// None yet. At least `most` are kept once there are so many, and less than twice as many.
  init(keeping most: Int) { self.most = most }

  /// Whether a cursor has taken all of them.
  func hasTakenAll(_ cursor: EventCursor) -> Bool { cursor.number == first + records.count }

  /// Begins anew where the partitions end that hold these offsets: whoever was among the records before no longer is. Nil
  /// where it is no topic that a position can be of.
  mutating func begin(holding held: [Int32: Range<Int64>]) -> EventPosition? {
    forget()
    guard let position = EventPosition(held.mapValues(\.upperBound)) else { return nil }
    (start, end, self.held) = (position, position, held)
    return position
  }

  /// Keeps nothing any more.
  mutating func forget() {
    first += records.count + 1
    epoch += 1
    records = []
    (start, end) = (nil, nil)
  }

  /// Adds a record behind all others.
  mutating func append(_ record: ReadEvent) {
    if records.count >= 2 * most - 1 {
      for old in records.prefix(most) { start?.pass(old.offset, of: old.partition) }
      records.removeFirst(most)
      first += most
    }
    records.append(record)
    end?.pass(record.offset, of: record.partition)
  }

  /// The next records behind a cursor, `most` at most, and none where it has taken all; a gap where the topic has gone back
  /// behind the cursor since it was there; nil where it is not among them.
  func page(for cursor: inout EventCursor, upTo most: Int) -> EventPage? {
    var number = cursor.number ?? first
    if cursor.number == nil || number < first {
      cursor.number = nil
      guard let start, let end else { return nil }
      if let known = cursor.epoch, known != epoch {
        guard let (position, isGap) = cursor.position.resumed(in: held) else { return nil }
        // What it has read since the cluster was asked may lie behind what that has said.
        if isGap, known == epoch - 1 { return nil }
        (cursor.position, cursor.epoch) = (position, epoch)
        if isGap { return EventPage(start: position, isGap: true) }
      }
      guard cursor.position.reaches(start), cursor.epoch != nil || end.reaches(cursor.position) else { return nil }
      cursor.epoch = epoch
      number = first
    }
    let some = records.dropFirst(number - first).prefix(most)
    cursor.number = number + some.count
    let position = cursor.position
    return EventPage(start: position, records: some.filter { $0.offset >= position[$0.partition] })
  }
}
