/// The only writer of a log in a directory: appends entries, and publishes signed checkpoints.
///
/// A checkpoint comes about in three steps. `flush` makes all entries and tiles durable, and notes which checkpoint is about
/// to be signed; the caller has it signed, and perhaps cosigned; `publish` shows it to readers. Whatever is killed and
/// whenever, the next writer goes on from the last checkpoint that may have been signed, so that no two checkpoints ever
/// contradict each other: what was flushed is kept, and what lies beyond is overwritten.
///
/// All calls block, for as long as the disk takes.
package final class LogWriter {
  /// The file in which the checkpoint stands that is about to be signed.
  static let announcementPath = ".about-to-sign"

  /// The start of a writer on a directory whose announcement of the last checkpoint was lost or rolled back.
  package enum Opening: Sendable {
    /// It throws `.damaged`: what is published may not be all that was signed.
    case strict
    /// It goes on from the published checkpoint. An operator decides so who knows that no later one was signed, or seen by
    /// anybody: another tree would contradict it, and a witness that has seen it refuses all others for ever.
    case fromPublished
  }

  /// The name of the log.
  package let origin: String
  /// The last checkpoint that was made durable: it may be signed, or was signed already.
  package private(set) var flushed: Checkpoint
  /// The note that readers see; nil before the first one.
  package private(set) var published: SignedNote?

  /// The number of entries, with those that are not flushed yet.
  package var size: UInt64 { log.edge.size }
  /// The directory, to read what was flushed: `LogView(writer.directory, at: writer.flushed.head)`.
  package var directory: LogDirectory { files.directory }
  /// Whether there is a checkpoint that may have been signed, and that readers do not see yet.
  package var isUnpublished: Bool { published?.text != flushed.text }

  private let files: LogFiles
  private var log: GrowingLog
  private var publishedSize: UInt64
  /// What the announcement may be: what was written last, and what was there before if that may have failed.
  private var announcements: [[UInt8]]

  /// Begins the log of that name in an empty directory, which is made where it is missing. False where it has begun
  /// already: it is as it was then.
  ///
  /// To begin a log is a decision of its own, which no writer takes: a directory whose volume is not mounted looks like
  /// one in which there never was a log, and a second log under the name of the first contradicts it.
  ///
  /// Throws `.locked` where another process writes to it, `.wrongOrigin` where it is another log, `.damaged` or
  /// `.conflict` where something lies there, which may be left of one, `.malformed` for a name that no log can have, and
  /// `.full` or `.failed` where the disk does not do what is needed.
  package static func begin(in path: String, origin: String) throws(LogError) -> Bool {
    try expectName(origin)
    let files = try LogFiles(locking: path, making: true)
    guard try find(origin, in: files, .strict).base == nil else { return false }
    if let name = try files.foreignName(beside: announcementPath) {
      throw LogError(.conflict, name, "a log begins in an empty directory")
    }
    // From here on, tiles without a checkpoint are those of one that was lost.
    try files.replace(announcementPath, with: Checkpoint(origin: origin, head: .empty).text)
    return true
  }

  /// Opens the log of that name in a directory.
  ///
  /// Throws `.absent` where no log was begun there, `.locked` where another process writes to it, `.wrongOrigin` where it
  /// is another log, `.damaged` or `.missing` with the file that does not fit, `.malformed` for a name that no log can
  /// have, and `.full` or `.failed` where the disk does not do what is needed.
  ///
  /// - Parameter opening: What happens where the announcement of the last checkpoint was lost or rolled back.
  package init(opening path: String, origin: String, _ opening: Opening = .strict) throws(LogError) {
    try Self.expectName(origin)
    self.origin = origin
    let files = try LogFiles(locking: path)
    let directory = files.locked
    let found = try Self.find(origin, in: files, opening)
    // Where no log is, nothing is ours.
    guard let base = found.base else { throw LogError(.absent, path, "no log was begun in this directory") }
    files.removeDrafts()
    // A writer that was killed may have left names that are not durable. A checkpoint that the next power failure takes
    // back must not be one that was signed.
    try files.syncAll()
    flushed = base
    log = try LogRecovery.restore(base.head, from: directory)
    try LogRecovery.checkFullFiles(of: base.head, since: found.published?.size ?? 0, in: directory)
    for older in [found.published, found.announced] {
      guard let older, older.size < base.size else { continue }
      try LogRecovery.check(base.head, continues: older, in: directory)
    }
    if found.announced != base { try files.replace(Self.announcementPath, with: base.text) }
    announcements = [flushed.text]
    (published, publishedSize) = (found.note, found.published?.size ?? 0)
    self.files = files
    // A writer that was killed behind a publication has not removed what it made superfluous.
    removePartials(from: publishedSize - min(publishedSize, Self.reviewedSize), to: publishedSize)
  }

  /// The number of bytes in memory from which on no entry is taken: what is appended while no flush succeeds ends there.
  var maximumByteCount = 256 << 20

  /// Appends an entry in memory, and returns its index, which counts only once `flush` has returned: a writer that is killed
  /// before gives it to another entry.
  ///
  /// Throws `.tooLarge` for one of more than 65,535 bytes, and `.full` where too much is not flushed yet: nothing is
  /// appended then.
  package func append(_ entry: [UInt8]) throws(LogError) -> UInt64 {
    guard entry.count <= EntryBundle.maximumEntrySize else {
      throw LogError(.tooLarge, "", "an entry of more than \(EntryBundle.maximumEntrySize) bytes")
    }
    guard log.byteCount + entry.count <= maximumByteCount else {
      throw LogError(.full, "", "more than \(maximumByteCount) bytes are not flushed yet")
    }
    log.append(entry)
    return log.edge.size - 1
  }

  /// Makes all entries and tiles durable, and returns the checkpoint that may now be signed.
  ///
  /// Where it throws (`.full`, `.failed`), nothing is lost: the entries are still in memory, and the next call tries again. Throws
  /// `.conflict` where another program has written to the directory: nothing can be signed then by this writer.
  package func flush() throws(LogError) -> Checkpoint {
    let next = Checkpoint(origin: origin, head: log.edge.head)
    guard next.size > flushed.size else { return flushed }
    for file in log.files { try files.write(file.bytes, to: file.path.text) }
    try files.sync()
    // Whatever fails behind this, the announcement may stand there already: no file that it needs is written again.
    log.settle()
    // A witness may see the checkpoint as soon as it is signed: from here on no other one of this size may be made.
    try announce(next)
    flushed = next
    return next
  }

  /// Replaces the announcement, which has to be this writer's own: another one's would be contradicted.
  private func announce(_ next: Checkpoint) throws(LogError) {
    let path = Self.announcementPath
    guard let bytes = try files.contents(of: path, limit: SignedNote.maximumByteCount), announcements.contains(bytes)
    else { throw LogError(.conflict, path, "another program has changed the file, or removed it") }
    announcements = [bytes, next.text]
    try files.replace(path, with: next.text)
    announcements = [next.text]
  }

  /// Shows a signed checkpoint to readers: the last one that was flushed, or once more the one that they see, with other
  /// signatures. Then removes partial files that full ones have replaced.
  ///
  /// Throws `.conflict` for any other one, and `.unsigned` or `.badSignature` where the log's key is given and has not
  /// signed it: readers would believe nothing any more. After `.full` or `.failed` it can be called again.
  package func publish(_ note: SignedNote, by key: VerifierKey? = nil) throws(LogError) {
    if let key { _ = try note.verified(by: [key]) }
    guard note.text == flushed.text || note.text == published?.text else {
      throw LogError(.conflict, LogPath.checkpoint, "this is not the checkpoint that was flushed")
    }
    try files.replace(LogPath.checkpoint, with: note.bytes)
    published = note
    guard note.text == flushed.text else { return }
    let old = publishedSize
    publishedSize = flushed.size
    removePartials(from: old, to: flushed.size)
  }

  /// Shows a checkpoint that enough witnesses have cosigned to readers, beside the newest one, which may not have got so far.
  package func publish(witnessed note: SignedNote) throws(LogError) {
    guard try Checkpoint(note.text).size <= flushed.size else {
      throw LogError(.conflict, LogPath.witnessed, "this is not a checkpoint of what was flushed")
    }
    try files.replace(LogPath.witnessed, with: note.bytes)
  }

  /// Shows the history of the log's keys to readers. It has to stand there before a checkpoint that a new key has signed.
  ///
  /// Throws `.malformed` for an empty history, `.tooLarge` for one that no reader takes, and `.conflict` for one that does
  /// not continue what readers see, or whose last tree is not the one that was flushed and published last: readers would
  /// take a published checkpoint before it for a log that has shrunk.
  package func publish(_ history: KeyHistory) throws(LogError) {
    guard let last = history.rotations.last else { throw .malformed("a history without a rotation") }
    let bytes = history.bytes
    guard bytes.count <= KeyHistory.maximumByteCount else {
      throw LogError(.tooLarge, LogPath.keys, "more than \(KeyHistory.maximumByteCount) bytes")
    }
    if let known = try files.contents(of: LogPath.keys, limit: KeyHistory.maximumByteCount), known != bytes {
      guard bytes.starts(with: known + [UInt8(ascii: "\n")]) else {
        throw LogError(.conflict, LogPath.keys, "the history does not continue the one that is published")
      }
    }
    guard last.head == flushed.head, !isUnpublished else {
      throw LogError(.conflict, LogPath.keys, "the last rotation is not at the checkpoint that was published last")
    }
    try files.replace(LogPath.keys, with: bytes)
  }

  /// Removes the partial files of what became full between two sizes that readers have seen.
  private func removePartials(from old: UInt64, to new: UInt64) {
    let width = UInt64(TilePath.fullWidth)
    for kind in TilePath.kinds {
      for index in TilePath.count(kind, in: old) / width..<TilePath.count(kind, in: new) / width {
        files.removePartials(of: TilePath(kind, index))
      }
    }
  }

  /// The number of entries before its end for which superseded partial files are looked for when a log is opened.
  private static let reviewedSize: UInt64 = 1 << 18

  private static func expectName(_ origin: String) throws(LogError) {
    guard KeyName.isValid(origin) else {
      throw .malformed("a log's name has no blanks, plus signs or control characters")
    }
  }

  /// What a directory says of how far its log is.
  private struct Found {
    /// The checkpoint to go on from; nil where no log was begun.
    let base: Checkpoint?
    let note: SignedNote?
    let published: Checkpoint?
    let announced: Checkpoint?
  }

  private static func find(
    _ origin: String, in files: borrowing LogFiles, _ opening: Opening
  ) throws(LogError) -> Found {
    let note = try readNote(in: files.locked)
    let published = try reading(LogPath.checkpoint) { () throws(LogError) in
      try note.map { note throws(LogError) in try Checkpoint(note.text) }
    }
    let announced = try readAnnouncement(in: files.locked)
    let base = try LogRecovery.base(
      of: origin, published: published, announced: announced, hasTiles: try files.hasTiles(), opening)
    return Found(base: base, note: note, published: published, announced: announced)
  }

  private static func readNote(in directory: LogDirectory) throws(LogError) -> SignedNote? {
    try reading(LogPath.checkpoint) { () throws(LogError) in
      try directory.contents(of: LogPath.checkpoint, limit: SignedNote.maximumByteCount)
        .map { bytes throws(LogError) in try SignedNote(bytes) }
    }
  }

  private static func readAnnouncement(in directory: LogDirectory) throws(LogError) -> Checkpoint? {
    try reading(announcementPath) { () throws(LogError) in
      try directory.contents(of: announcementPath, limit: SignedNote.maximumByteCount)
        .map { bytes throws(LogError) in try Checkpoint(bytes) }
    }
  }

  /// Reports malformed contents as damage to the file: the writer itself wrote it.
  private static func reading<Value>(_ path: String, _ body: () throws(LogError) -> Value) throws(LogError) -> Value {
    do {
      return try body()
    } catch {
      throw [.malformed, .tooLarge].contains(error.code) ? LogError(.damaged, path, error.detail) : error
    }
  }
}
