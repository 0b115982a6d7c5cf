package import AccountEvents
import Cryptography
package import EventLoop
import Glibc
package import Telemetry

/// Remembers which events were accepted, because Apple repeats deliveries: the last `number` of them, for `time` each.
///
/// The memory is a ring in a file, written a moment later and without waiting for the disk: a process that is killed loses
/// the last of it. What is forgotten is accepted once more and stands on the log twice, which every reader has to expect
/// of Kafka anyway. The file holds nothing but hashes.
@Loop
package final class AcceptedEvents {
  /// An entry of the file, in the machine's own byte order: the file never leaves the machine.
  private struct Entry: Sendable {
    static let size = 32

    var high: UInt64
    var low: UInt64
    /// Which entry of all it is, from 1; its place is this modulo their number. 0 where there is none.
    var sequence: UInt64
    /// When it was accepted, in seconds since 1970.
    var seconds: Int64
  }

  private struct Known {
    var low: UInt64
    var seconds: Int64
    var place: Int
  }

  /// How long accepted events wait for others to be written with them.
  private static let delay = Duration.milliseconds(50)
  /// How many entries are read at once.
  private static let chunk = 4096

  private let number: Int
  private let time: Int64
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let descriptor: CInt
  private var known: [UInt64: Known] = [:]
  /// The first halves by their place, so that the oldest makes room.
  private var ring: [UInt64]
  private var sequence: UInt64 = 0
  private var isWriting = true
  private var unwritten: [Entry] = []
  private var isFlushing = false
  private var isClosed = false
  private let flusher = Deadline()
  private let thread = BlockingThread(named: "accepted-events")

  /// Opens the memory in the spool's directory, or begins it. The spool sees to it that one process has the directory.
  /// A file that cannot be opened or read is no reason not to start: nothing of the past is known then, which is logged.
  ///
  /// - Parameters:
  ///   - number: How many events are remembered at most; each takes 32 bytes of the file, and 80 to 130 of memory.
  ///   - time: How long an event is remembered, by the wall clock.
  package init(
    in directory: String, number: Int, time: Duration, now: @escaping @Sendable () -> Timestamp, logger: Logger
  ) {
    (self.number, self.time, self.now, self.logger) = (number, time.components.seconds, now, logger)
    ring = [UInt64](repeating: 0, count: number)
    descriptor = unsafe open("\(directory)/accepted-events", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    do throws(SystemError) {
      guard descriptor >= 0 else { throw .current }
      try restore()
    } catch {
      (known, ring, sequence) = ([:], [UInt64](repeating: 0, count: number), 0)
      logger.warning(
        "accepted events of before this start are not known: what Apple repeats of them is published again",
        ["spool.directory": .string(directory), "cause": .describing(error)])
    }
    flusher.onPass { [weak self] in self?.flushNow() }
  }

  /// How many events it knows, those that are too old included.
  package var count: Int { known.count }

  /// What an accepted event is known by: the first half of a SHA-256 of its topic, team, audience and id. An event that
  /// went into quarantine is another one than the same event on its own topic, and so is one of another team or app.
  package struct Mark: Sendable {
    let high: UInt64
    let low: UInt64

    /// The mark of an event on a topic. Marks of versions that knew the id alone match none of these, and make room as
    /// any others do.
    package init(of id: EventID, on topic: Topic, team: TeamID, audience: ClientID) {
      // None of the four holds a line break.
      let text = "\(topic.name)\n\(team.text)\n\(audience.text)\n\(id.text)"
      let digest = SHA256.digest(of: Array(text.utf8)).bytes
      func half(_ start: Int) -> UInt64 { digest[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
      (high, low) = (half(0), half(8))
    }
  }

  /// Whether the event was accepted.
  package func contains(_ mark: Mark) -> Bool {
    guard let entry = known[mark.high], entry.low == mark.low else { return false }
    return now().seconds &- entry.seconds < time
  }

  /// Remembers that the event was accepted.
  package func insert(_ mark: Mark) {
    sequence += 1
    let entry = Entry(high: mark.high, low: mark.low, sequence: sequence, seconds: now().seconds)
    remember(entry)
    // As many as there are places: older ones would be overwritten anyway.
    if unwritten.count == number { unwritten.removeFirst(number / 2) }
    unwritten.append(entry)
    flushSoon()
  }

  /// Ends it. What is inserted afterwards is not written down. Closing again does nothing: the descriptor's number may be
  /// another file's by then.
  package func close() async {
    guard !isClosed else { return }
    isClosed = true
    flusher.invalidate()
    await flush()
    thread.close()
    Glibc.close(descriptor)
  }

  private func remember(_ entry: Entry) {
    let place = Int(entry.sequence % UInt64(number))
    // What was accepted again after its time has a younger place meanwhile.
    if known[ring[place]]?.place == place { known[ring[place]] = nil }
    ring[place] = entry.high
    known[entry.high] = Known(low: entry.low, seconds: entry.seconds, place: place)
  }

  /// Writes what was accepted since the last time, off the loop: whatever the disk does, notifications go on.
  package func flush() async {
    let entries = unwritten
    unwritten = []
    if entries.isEmpty { return }
    let (descriptor, number) = (descriptor, number)
    let failure = await thread.run { Self.write(entries, to: descriptor, number) }
    guard (failure == nil) != isWriting else { return }
    isWriting.toggle()
    if let failure {
      logger.warning(
        "accepted events are not written down: they will not be known after a restart", ["cause": .describing(failure)])
    } else {
      logger.info("accepted events are written down again")
    }
  }

  private func flushSoon() {
    guard !isFlushing, flusher.due == .distantFuture else { return }
    flusher.set(Loop.now + Self.delay)
  }

  private func flushNow() {
    isFlushing = true
    Task(executorPreference: Loop.executor) { await self.flushAndGoOn() }
  }

  private func flushAndGoOn() async {
    await flush()
    isFlushing = false
    if !unwritten.isEmpty, !isClosed { flushSoon() }
  }

  private nonisolated static func write(_ entries: [Entry], to descriptor: CInt, _ number: Int) -> SystemError? {
    for entry in entries {
      let place = off_t(entry.sequence % UInt64(number)) * off_t(Entry.size)
      let written = unsafe withUnsafeBytes(of: entry) { unsafe pwrite(descriptor, $0.baseAddress, $0.count, place) }
      if written != Entry.size { return .current }
    }
    return nil
  }

  /// Takes up what the last run left. A file for another number of entries is made anew with what fits.
  private func restore() throws(SystemError) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .current }
    let places = Int(status.st_size) / Entry.size
    var found: [Entry] = []
    for start in stride(from: 0, to: places, by: Self.chunk) {
      let entries = try read(at: start, min(Self.chunk, places - start))
      // What a power failure left half written is not in its place, or matches no event.
      found += zip(start..., entries).lazy
        .filter { place, entry in
          1..<1 << 62 ~= entry.sequence && entry.sequence % UInt64(places) == UInt64(place)
        }
        .map(\.1)
    }
    found.sort { $0.sequence < $1.sequence }
    sequence = found.last?.sequence ?? 0
    for entry in found.suffix(number) { remember(entry) }
    guard places != number else { return }
    guard ftruncate(descriptor, 0) == 0, ftruncate(descriptor, off_t(number * Entry.size)) == 0 else { throw .current }
    if let failure = Self.write(found.suffix(number), to: descriptor, number) { throw failure }
  }

  private func read(at place: Int, _ number: Int) throws(SystemError) -> [Entry] {
    var entries = [Entry](repeating: Entry(high: 0, low: 0, sequence: 0, seconds: 0), count: number)
    let count = unsafe entries.withUnsafeMutableBytes {
      unsafe pread(descriptor, $0.baseAddress, $0.count, off_t(place * Entry.size))
    }
    guard count >= 0 else { throw .current }
    return Array(entries.prefix(count / Entry.size))
  }
}

extension Timestamp {
  fileprivate var seconds: Int64 { milliseconds / 1000 }
}
