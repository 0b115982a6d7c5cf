package import AccountEvents
package import EventLoop
package import Telemetry

/// Remembers which events were accepted, because Apple repeats deliveries: the last `number` of them, for `time` each.
///
/// A file has the memory too, written a moment later and without waiting for the disk: a process that is killed loses the
/// last of it. What is forgotten is accepted once more and stands on the log twice, which every reader has to expect of
/// Kafka anyway. The file holds nothing but hashes.
@Loop
package final class AcceptedEvents {
  /// The name of the file in the directory of the spool.
  nonisolated static let fileName = "accepted-events"
  /// How long accepted events wait for others to be written with them.
  private static let delay = Duration.milliseconds(50)

  private let time: Int64
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let file: MarkFile
  private var ring: MarkRing
  private var sequence: UInt64 = 0
  private var isWriting = true
  private var unwritten: [MarkFile.Entry] = []
  private var isFlushing = false
  private var isClosed = false
  private let flusher = Deadline()
  private let thread = BlockingThread(named: "accepted-events")

  /// Opens the memory in the spool's directory, or begins it. The spool sees to it that one process has the directory.
  /// A file that cannot be opened or read is no reason not to start: nothing of the past is known then, which is logged.
  ///
  /// - Parameters:
  ///   - number: How many events are remembered at most; each takes 26 bytes of memory, and 32 of the file. All of the
  ///     memory is taken here.
  ///   - time: How long an event is remembered, by the wall clock.
  package init(
    in directory: String, number: Int, time: Duration, now: @escaping @Sendable () -> Timestamp, logger: Logger
  ) {
    (self.time, self.now, self.logger) = (time.components.seconds, now, logger)
    (file, ring) = (MarkFile("\(directory)/\(Self.fileName)", entries: number), MarkRing(places: number))
    do throws(SystemError) {
      let entries = try file.restore()
      for entry in entries { remember(entry) }
      sequence = entries.last?.sequence ?? 0
    } catch {
      logger.warning(
        "accepted events of before this start are not known: what Apple repeats of them is published again",
        ["spool.directory": .string(directory), "cause": .describing(error)])
    }
    flusher.onPass { [weak self] in self?.flushNow() }
  }

  /// How many events it knows, those that are too old included.
  package var count: Int { ring.count }

  /// Whether the event was accepted.
  package func contains(_ mark: Mark) -> Bool {
    guard let seconds = ring.seconds(of: mark) else { return false }
    return now().seconds &- Int64(seconds) < time
  }

  /// Remembers that the event was accepted now.
  package func insert(_ mark: Mark) { insert(mark, now().seconds) }

  /// Remembers that the event was accepted then, unless that is known or too long ago; with nil, now.
  func insert(_ mark: Mark, acceptedAt then: Timestamp?) {
    let seconds = (then ?? now()).seconds
    if now().seconds &- seconds < time, !contains(mark) { insert(mark, seconds) }
  }

  private func insert(_ mark: Mark, _ seconds: Int64) {
    sequence += 1
    let entry = MarkFile.Entry(mark: mark, sequence: sequence, seconds: seconds)
    remember(entry)
    // As many as there are places: older ones would be overwritten anyway.
    if unwritten.count == ring.places { unwritten.removeFirst((ring.places + 1) / 2) }
    unwritten.append(entry)
    flushSoon()
  }

  private func remember(_ entry: MarkFile.Entry) {
    ring.insert(
      entry.mark, at: UInt32(clamping: entry.seconds), in: Int(entry.sequence % UInt64(ring.places)))
  }

  /// Ends it. What is inserted afterwards is not written down. Closing again does nothing: the descriptor's number may be
  /// another file's by then.
  package func close() async {
    guard !isClosed else { return }
    isClosed = true
    flusher.invalidate()
    await flush()
    // Behind what another flush has given to the thread.
    await thread.run { [file] in file.close() }
    thread.close()
  }

  /// Writes what was accepted since the last time, off the loop: whatever the disk does, notifications go on.
  package func flush() async {
    let entries = unwritten
    unwritten = []
    if entries.isEmpty { return }
    let failure = await thread.run { [file] in file.write(entries) }
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
}

extension Timestamp {
  fileprivate var seconds: Int64 { milliseconds / 1000 }
}
