package import AccountEvents
import SQLite

/// What a spool holds, without a word about whom: for operators, while the process that has it goes on.
package struct SpoolReport: Sendable, Equatable {
  /// How many records there are of one kind.
  package struct Count: Sendable, Equatable {
    /// Where they are to be published.
    package let topic: Topic
    /// Their type, as CloudEvents has it; empty where they have none.
    package let type: String
    /// How many.
    package let records: Int
  }

  /// A record that waits.
  package struct Entry: Sendable, Equatable {
    /// Its place in the queue.
    package let sequence: Int64
    /// Since when it has been here.
    package let since: Timestamp
    /// Where it is to be published.
    package let topic: Topic
    /// The number that Apple gave the event; empty where it has none.
    package let eventID: String
    /// Its type, as CloudEvents has it; empty where it has none.
    package let type: String
  }

  /// How many records there are.
  package private(set) var records = 0
  /// What they take of the spool's size, in bytes.
  package private(set) var bytes = 0
  /// Since when the oldest of them has been here; nil where there is none.
  package private(set) var oldest: Timestamp?
  /// The places of those that cannot be read, and so are not published.
  package private(set) var damaged: [Int64] = []
  /// How many of each kind, the most frequent first.
  package private(set) var counts: [Count] = []
  /// The oldest of them, as many as were asked for.
  package private(set) var first: [Entry] = []

  /// Looks into the spool in `directory`, and lists the oldest `limit` records. All of it is seen as of one moment.
  ///
  /// It blocks while it reads, so it belongs on a thread of its own; whoever writes to the spool does not wait for it.
  package init(lookingInto directory: String, listing limit: Int) throws(SpoolError) {
    let database = try SpoolSchema.look(into: directory)
    try SpoolError.translating(directory) { () throws(SQLiteError) in
      try database.snapshot { () throws(SQLiteError) in try read(database, limit) }
    }
  }

  /// Looks into the spool in `directory` for some records, oldest first: each whole, or nil where it cannot be read. It
  /// blocks while it reads.
  package static func records(
    _ sequences: Set<Int64>, lookingInto directory: String
  ) throws(SpoolError) -> [(sequence: Int64, record: SpooledRecord?)] {
    let database = try SpoolSchema.look(into: directory)
    var found: [(sequence: Int64, record: SpooledRecord?)] = []
    try SpoolError.translating(directory) { () throws(SQLiteError) in
      let reading = try database.prepare(
        "SELECT sequence, since, topic, key, headers, value FROM held WHERE sequence = ?")
      for sequence in sequences.sorted() {
        try reading.forEach(sequence) { row throws(SQLiteError) in
          do throws(SQLiteError) {
            found.append((sequence, try SpooledRecord(reading: row)))
          } catch {
            guard error.code == .unexpectedValue else { throw error }
            found.append((sequence, nil))
          }
        }
      }
    }
    return found
  }

  private mutating func read(_ database: Database, _ limit: Int) throws(SQLiteError) {
    let content = try SpoolSchema.content(of: database)
    (records, bytes, oldest) = (content.records, content.bytes, content.oldest)
    var found: [[String]: Int] = [:]
    let records = try database.prepare(
      "SELECT sequence, since, topic, key, headers, value FROM held ORDER BY sequence")
    try records.forEach { row throws(SQLiteError) in
      let record: SpooledRecord
      do throws(SQLiteError) {
        record = try SpooledRecord(reading: row)
      } catch {
        guard error.code == .unexpectedValue else { throw error }
        return damaged.append(try row.value(0))
      }
      let (topic, headers) = (record.record.topic, record.record.headers)
      let type = headers.text(of: "ce_type")
      found[[topic.name, type], default: 0] += 1
      guard first.count < limit else { return }
      first.append(
        Entry(
          sequence: record.sequence, since: record.since, topic: topic, eventID: headers.text(of: "ce_id"), type: type))
    }
    counts = found.map { Count(topic: Topic(name: $0.key[0]), type: $0.key[1], records: $0.value) }
    counts.sort { ($1.records, $0.topic.name, $0.type) < ($0.records, $1.topic.name, $1.type) }
  }
}

extension [EventRecord.Header] {
  /// The text of a header; empty where there is none of that name.
  func text(of name: String) -> String {
    first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) } ?? ""
  }
}
