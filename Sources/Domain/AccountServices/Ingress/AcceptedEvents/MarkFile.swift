import EventLoop
import Glibc

/// The file of the accepted events: a ring of entries, each in the place of its number.
///
/// What a power failure left half written is not in its place, or matches no event.
struct MarkFile: Sendable {
  /// An entry, in the machine's own byte order: the file never leaves the machine.
  struct Entry: Sendable {
    static let size = 32

    var mark: AcceptedEvents.Mark
    /// Which entry of all it is, from 1; its place is this modulo their number. 0 where there is none.
    var sequence: UInt64
    /// When it was accepted, in seconds since 1970.
    var seconds: Int64
  }

  /// How many entries are read at once.
  private static let chunk = 4096

  private let descriptor: CInt
  private let failure: SystemError?
  private let number: Int

  /// Reads what is in the file at `path`, oldest first, and changes nothing; none where there is no file.
  static func look(into path: String) throws(SystemError) -> [Entry] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else {
      if errno == ENOENT { return [] }
      throw .current
    }
    let file = MarkFile(descriptor)
    defer { file.close() }
    return try file.entries().found
  }

  private init(_ descriptor: CInt) { (self.descriptor, failure, number) = (descriptor, nil, 0) }

  /// Opens the file, or makes it, for so many entries. `restore` says where it cannot be opened.
  init(_ path: String, entries number: Int) {
    descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    (failure, self.number) = (descriptor < 0 ? .current : nil, number)
  }

  /// What is in it, oldest first. A file for another number of entries is made anew with what fits.
  func restore() throws(SystemError) -> [Entry] {
    if let failure { throw failure }
    var (found, places) = try entries()
    found = found.suffix(number)
    guard places != number else { return found }
    guard ftruncate(descriptor, 0) == 0, ftruncate(descriptor, off_t(number * Entry.size)) == 0 else { throw .current }
    if let failure = write(found) { throw failure }
    return found
  }

  /// What is in the file, oldest first, and for how many entries it was made.
  private func entries() throws(SystemError) -> (found: [Entry], places: Int) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .current }
    let places = Int(status.st_size) / Entry.size
    var found: [Entry] = []
    for start in stride(from: 0, to: places, by: Self.chunk) {
      let entries = try read(at: start, min(Self.chunk, places - start))
      for (place, entry) in zip(start..., entries)
      where 1..<1 << 62 ~= entry.sequence && entry.sequence % UInt64(places) == UInt64(place) {
        found.append(entry)
      }
    }
    return (found.sorted { $0.sequence < $1.sequence }, places)
  }

  /// Writes entries, each piece of the ring at once.
  func write(_ entries: [Entry]) -> SystemError? {
    var rest = entries[...]
    while let first = rest.first {
      let place = Int(first.sequence % UInt64(number))
      let piece = zip(rest, first.sequence...).prefix(number - place).prefix { $0.sequence == $1 }.count
      let written = unsafe rest.prefix(piece).withUnsafeBytes {
        unsafe pwrite(descriptor, $0.baseAddress, $0.count, off_t(place * Entry.size))
      }
      if written != piece * Entry.size { return .current }
      rest = rest.dropFirst(piece)
    }
    return nil
  }

  private func read(at place: Int, _ number: Int) throws(SystemError) -> [Entry] {
    var entries = [Entry](repeating: Entry(mark: .none, sequence: 0, seconds: 0), count: number)
    let count = unsafe entries.withUnsafeMutableBytes {
      unsafe pread(descriptor, $0.baseAddress, $0.count, off_t(place * Entry.size))
    }
    guard count >= 0 else { throw .current }
    return Array(entries.prefix(count / Entry.size))
  }

  func close() { _ = Glibc.close(descriptor) }
}
