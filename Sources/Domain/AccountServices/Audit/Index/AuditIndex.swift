package import AccountEvents
import EventLoop
import Glibc
package import Kafka
package import SQLite

/// What can be found in an audit log without reading it: which entry has a key, which entries are about an event, and how
/// far each partition was read.
///
/// It is derived from the entries and can be made again from them, so its commits are not synced: after a power failure it
/// is as of some moment before. It is never ahead of the log, because it is committed once the entries are durable. One
/// process writes it; others may read it meanwhile, and find the entries behind its extent in the log itself.
package final class AuditIndex {
  /// The name of its file in the log's directory.
  package static let fileName = "index.sqlite"

  /// What is committed with the entries up to it.
  package struct Extent: Sendable, Equatable {
    /// How many entries of the log are in it.
    package var size: UInt64
    /// The leaf hash of the last of them: tells this log from another one. Empty of an empty log.
    package var lastLeaf: [UInt8]

    /// An extent.
    package init(size: UInt64, lastLeaf: [UInt8]) { (self.size, self.lastLeaf) = (size, lastLeaf) }
  }

  /// The version of its tables.
  private static let version: Int64 = 1
  private static let busyTimeout = Duration.seconds(10)

  /// What was committed last.
  package private(set) var extent: Extent
  private let database: Database
  private let insertion, lookUp, ofEvent, places, placing, stating: Statement
  private var isInTransaction = false

  /// Opens the index in the log's directory for writing; makes it anew where it is missing or no index of this version.
  package static func open(in directory: String) throws(SQLiteError) -> AuditIndex {
    let path = "\(directory)/\(fileName)"
    do throws(SQLiteError) {
      let database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: busyTimeout)
      if try prepare(database) { return try AuditIndex(database) }
    } catch {
      guard [.corrupt, .notADatabase, .unexpectedValue].contains(error.code) else { throw error }
    }
    remove(in: directory)
    let database = try Database(path, .readWrite(pageSize: 4096), busyTimeout: busyTimeout)
    guard try prepare(database) else { throw .unexpectedValue("a new index has another version") }
    return try AuditIndex(database)
  }

  /// Opens the index in the log's directory to look things up; nil where there is none of this version.
  package static func look(into directory: String) throws(SQLiteError) -> AuditIndex? {
    let path = "\(directory)/\(fileName)"
    guard unsafe access(path, F_OK) == 0 else { return nil }
    let database = try Database(path, .readOnly, busyTimeout: busyTimeout)
    return try version(of: database) == version ? try AuditIndex(database) : nil
  }

  /// Removes the files of the index in the log's directory.
  package static func remove(in directory: String) {
    for suffix in ["", "-wal", "-shm"] { unsafe unlink("\(directory)/\(fileName)\(suffix)") }
  }

  private init(_ database: Database) throws(SQLiteError) {
    self.database = database
    insertion = try database.prepare("INSERT OR IGNORE INTO entry (event, identity, number) VALUES (?, ?, ?)")
    lookUp = try database.prepare("SELECT number FROM entry WHERE event = ? AND identity = ?")
    ofEvent = try database.prepare("SELECT number FROM entry WHERE event = ? ORDER BY number LIMIT ?")
    places = try database.prepare("SELECT topic, partition, offset, note FROM place")
    placing = try database.prepare(
      """
      INSERT INTO place (topic, partition, offset, note) VALUES (?, ?, ?, ?)
      ON CONFLICT (topic, partition) DO UPDATE SET offset = excluded.offset, note = excluded.note
      """)
    stating = try database.prepare("UPDATE extent SET size = ?, last_leaf = ?")
    let found = try database.prepare("SELECT size, last_leaf FROM extent").first { row throws(SQLiteError) in
      Extent(size: UInt64(bitPattern: try row.value(0)), lastLeaf: try row.value(1))
    }
    guard let found else { throw .unexpectedValue("the index does not say what it covers") }
    extent = found
  }

  // MARK: Looking up

  /// The number of the entry that has the key; nil where there is none.
  package func number(of key: EntryKey) throws(SQLiteError) -> UInt64? {
    try lookUp.first(key.event, key.identity) { row throws(SQLiteError) in
      UInt64(bitPattern: try row.value(0))
    }
  }

  /// The numbers of the entries about an event, ascending, `limit` at most; perhaps of another event that has the same
  /// `EntryKey.event` among them.
  package func numbers(of event: EventID, limit: Int) throws(SQLiteError) -> [UInt64] {
    var numbers: [UInt64] = []
    try ofEvent.forEach(EntryKey.event(event), Int64(limit)) { row throws(SQLiteError) in
      numbers.append(UInt64(bitPattern: try row.value(0)))
    }
    return numbers
  }

  /// Where each partition is to be read on, with the note of its `PartitionContinuity`.
  package func positions() throws(SQLiteError) -> [TopicPartition: CommittedOffset] {
    var positions: [TopicPartition: CommittedOffset] = [:]
    try places.forEach { row throws(SQLiteError) in
      guard let partition = Int32(exactly: try row.value(1, as: Int64.self)) else {
        throw .unexpectedValue("a partition")
      }
      positions[TopicPartition(try row.value(0), partition)] = CommittedOffset(
        try row.value(2), note: try row.value(3))
    }
    return positions
  }

  // MARK: Writing

  /// Notes that the entry of that number has the key. False where another one has it: then nothing is noted.
  package func add(_ key: EntryKey, _ number: UInt64) throws(SQLiteError) -> Bool {
    try begin()
    try insertion.run(key.event, key.identity, Int64(bitPattern: number))
    return database.changes == 1
  }

  /// Notes where a partition is to be read on.
  package func set(_ position: CommittedOffset, of partition: TopicPartition) throws(SQLiteError) {
    try begin()
    try placing.run(partition.topic, Int64(partition.partition), position.offset, position.note)
  }

  /// Makes all that was noted lasting: not before the log up to there is durable, and while nothing behind it is noted.
  package func commit(_ extent: Extent) throws(SQLiteError) {
    try begin()
    try stating.run(Int64(bitPattern: extent.size), extent.lastLeaf)
    try database.execute("COMMIT")
    (isInTransaction, self.extent) = (false, extent)
  }

  /// Begins anew, with nothing.
  package func clear() throws(SQLiteError) {
    try begin()
    try database.execute("DELETE FROM entry; DELETE FROM place")
    try commit(Extent(size: 0, lastLeaf: []))
  }

  private func begin() throws(SQLiteError) {
    if isInTransaction { return }
    try database.execute("BEGIN IMMEDIATE")
    isInTransaction = true
  }

  /// Makes the tables where there are none. False where they are of another version.
  private static func prepare(_ database: Database) throws(SQLiteError) -> Bool {
    // Commits are not synced, only the log's pages before they go into the file: a power failure takes away the last
    // commits, and never leaves half of one. 32 MiB of pages, and twice as much of the log, because keys come in no order.
    try database.execute(
      """
      PRAGMA synchronous = NORMAL; PRAGMA secure_delete = OFF; PRAGMA cache_size = -32768;
      PRAGMA wal_autocheckpoint = 16384; PRAGMA journal_size_limit = 67108864
      """)
    let found = try version(of: database)
    if found == 0 {
      try database.transaction { () throws(SQLiteError) in
        try database.execute(
          """
          CREATE TABLE entry (event INTEGER NOT NULL, identity BLOB NOT NULL CHECK (length(identity) = 16),
            number INTEGER NOT NULL, PRIMARY KEY (event, identity)) STRICT, WITHOUT ROWID;
          CREATE TABLE place (topic TEXT NOT NULL, partition INTEGER NOT NULL, offset INTEGER NOT NULL,
            note TEXT NOT NULL, PRIMARY KEY (topic, partition)) STRICT, WITHOUT ROWID;
          CREATE TABLE extent (size INTEGER NOT NULL, last_leaf BLOB NOT NULL) STRICT;
          INSERT INTO extent VALUES (0, x'');
          PRAGMA user_version = 1
          """)
      }
      return true
    }
    return found == version
  }

  private static func version(of database: Database) throws(SQLiteError) -> Int64 {
    try database.prepare("PRAGMA user_version").first { row throws(SQLiteError) in try row.value(0) } ?? 0
  }
}
