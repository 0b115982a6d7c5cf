package import AccountEvents
package import EventLoop
package import Telemetry

/// A durable queue of records in a directory: what was answered 200 before Kafka acknowledged it.
///
/// It is written in groups: what is asked for while a transaction is under way goes together into the next one, and all
/// of it waits for one sync. What `insert` has returned for survives the process and the power, until `remove`. One
/// process at a time has the directory.
@Loop
package final class Spool {
  /// How long the disk is left alone after it refused removals, and how long nothing is held before space is given back:
  /// a record that only comes and goes must not cost that too.
  private static let patience = Duration.milliseconds(500)
  /// How often a disk that took no record is asked whether it would, so that nobody has to lose one to find out.
  package nonisolated static let probing = Duration.seconds(2)

  /// How many records it holds.
  package var depth: Int { content.records }
  /// How many bytes of its limit they take.
  package var bytes: Int { content.bytes }
  /// Whether it takes another record, however large one may be: it has room, and its disk took the last one.
  package var takesRecords: Bool { refusal == nil && content.bytes + pledged + (64 << 10) <= limit }
  /// Why the disk takes no records; nil where it took the last one.
  package private(set) var refusal: SpoolError?
  /// How many times it is known by now whether the disk takes records.
  private var answers: UInt64 = 0
  /// Why its file, which could not be opened at the start, cannot be opened now though the disk has room; nil otherwise.
  package var failureToOpen: SpoolError? { isOpen || refusal?.code == .full ? nil : refusal }
  /// Whether its disk has said nothing for long.
  package var isHanging: Bool { refusal?.code == .hanging }
  /// How many damaged files were set aside and are still there.
  package private(set) var setAside = 0
  /// The last number that was given to a record; 0 before the first one.
  package private(set) var lastSequence: Int64
  /// The numbers of those that were found damaged. They stay, and nobody waits for them.
  package private(set) var damaged: Set<Int64> = []
  /// Since when the oldest of them has been here; nil where there is none.
  package var oldest: Timestamp? { content.oldest }

  private let directory: String
  private let limit: Int
  let keeper: SpoolKeeper
  private let now: @Sendable () -> Timestamp
  private let metrics: SpoolMetrics
  private let logger: Logger
  private var content: SpoolFile.Content
  /// What the records take that have a number and are not written yet.
  private var pledged = 0
  private var waiting = SpoolGroup()
  /// How many removals are tried at once, and those that the disk has refused and not taken since.
  private var removalsAtATime = SpoolGroup.most
  private var stuck: Set<Int64> = []
  private var working: Task<Void, Never>?
  private let pause = Deadline()
  private var isFailing = false
  private var isUnreadable = false
  /// Told when all that it held was set aside after the start.
  var whenSetAside: (@Loop () -> Void)?
  /// Whether the file is open. If not, the disk was full when it was to be opened.
  private(set) var isOpen = true
  /// What the file holds, as long as it is not open.
  private var held: [HeldRecord] = []
  private let probe = Deadline()
  private let probing: Duration
  private let survey = Deadline()
  /// Whether the file and its log may hold what is gone.
  private var hasRemains = true
  private var isClosed = false

  /// Opens the spool in `directory`, or makes it. `limit` is how many bytes it may hold.
  ///
  /// A damaged file is set aside, and the spool begins anew. On a disk that is so full that the file cannot be opened, the
  /// spool refuses all records, and publishes none, until it can be: what it holds is only counted.
  package static func open(
    directory: String, limit: Int, probing: Duration = Spool.probing, now: @escaping @Sendable () -> Timestamp,
    registry: MetricsRegistry, logger: Logger
  ) async throws(SpoolError) -> Spool {
    let keeper = SpoolKeeper(directory)
    let opening = try await keeper.open(at: now())
    let spool = Spool(directory, limit, probing, keeper, opening.content, now, SpoolMetrics(registry), logger)
    SpoolMetrics.add(spool, to: registry)
    await spool.begin(opening)
    return spool
  }

  private func begin(_ opening: SpoolKeeper.Opening) async {
    saySetAside(opening)
    if let refusal = opening.refusal {
      (isOpen, held) = (false, opening.held)
      metrics.failures[.full].increment()
      note(refusal: refusal)
      logger.error(
        "the disk is full: the spool is not open, takes nothing and publishes nothing",
        [
          "spool.directory": .string(directory), "spool.records": .integer(content.records),
          "cause": .describing(refusal),
        ])
    }
    await countSetAside()
    startWorking(afterPause: true)
  }

  private func saySetAside(_ opening: SpoolKeeper.Opening) {
    guard let (place, cause) = opening.setAside else { return }
    logger.error(
      "the spool's file is damaged: it was set aside with all that it holds, and another one takes its place",
      ["spool.directory": .string(directory), "spool.setAside": .string(place), "cause": .describing(cause)])
  }

  private init(
    _ directory: String, _ limit: Int, _ probing: Duration, _ keeper: SpoolKeeper, _ content: SpoolFile.Content,
    _ now: @escaping @Sendable () -> Timestamp, _ metrics: SpoolMetrics, _ logger: Logger
  ) {
    (self.directory, self.limit, self.probing, self.keeper) = (directory, limit, probing, keeper)
    self.content = content
    (self.now, self.metrics, self.logger, lastSequence) = (now, metrics, logger, content.lastSequence)
    pause.onPass { [weak self] in self?.startWorking(afterPause: true) }
    probe.onPass { [weak self] in
      Task(executorPreference: Loop.executor) { await self?.probeDisk() }
    }
    survey.onPass { [weak self] in
      Task(executorPreference: Loop.executor) { await self?.countSetAside() }
    }
  }

  /// Puts the record behind all others, and returns its number once it would survive a power failure. Records get their
  /// numbers in the order of the calls.
  ///
  /// Throws `.full` where it would hold more than it may, or the disk is full. A record whose insertion failed is not in
  /// the spool; only where the sync itself failed, and the process died before the next one, may it come back.
  package func insert(_ record: EventRecord) async throws(SpoolError) -> Int64 {
    try await withCheckedContinuation { waiter in insert(record) { waiter.resume(returning: $0) } }.get()
  }

  /// The same; `report` is called once with what it comes to, and maybe before this returns.
  func insert(_ record: EventRecord, then report: @escaping SpoolGroup.Inserter) {
    let size = SpooledRecord.size(of: record)
    if isClosed { return report(.failure(SpoolError(.closed, directory, "it was closed"))) }
    // What would only queue behind what hangs takes memory, and is told nothing.
    if let refusal, !isOpen || isHanging {
      metrics.failures[refusal.code == .full ? .full : .write].increment()
      return report(.failure(refusal))
    }
    guard content.bytes + pledged + size <= limit else {
      metrics.failures[.full].increment()
      return report(.failure(SpoolError(.full, directory, "it holds as much as it may")))
    }
    lastSequence += 1
    pledged += size
    waiting.inserts.append((SpooledRecord(sequence: lastSequence, record: record, since: now()), report))
    startWorking()
  }

  /// Takes a record out, and returns once that would survive a power failure. While the disk refuses, it is asked again
  /// and again; it is given up only where the spool is closed meanwhile.
  package func remove(_ sequence: Int64) async {
    await withCheckedContinuation { waiter in remove(sequence) { waiter.resume() } }
  }

  /// The same; `report` is called once it is done or given up, and maybe before this returns.
  func remove(_ sequence: Int64, then report: @escaping SpoolGroup.Remover) {
    if isClosed { return report() }
    waiting.removals.append((sequence, report))
    startWorking()
  }

  /// The records behind a place, oldest first, `limit` at most; from the beginning with 0. What is damaged is left out.
  package func read(after sequence: Int64, limit: Int) async throws(SpoolError) -> [SpooledRecord] {
    guard isOpen else { return [] }
    return try taken(await keeper.run { file throws(SpoolError) in try file.read(after: sequence, limit: limit) })
  }

  /// The records of these numbers, in their order. What is damaged or gone is left out. Throws while it is not open.
  func read(_ sequences: [Int64]) async throws(SpoolError) -> [SpooledRecord] {
    if !isOpen, let refusal { throw refusal }
    return try taken(await keeper.run { file throws(SpoolError) in try file.read(sequences) })
  }

  /// What was read, after saying what is damaged: once.
  private func taken(_ result: Result<SpoolPage, SpoolError>) throws(SpoolError) -> [SpooledRecord] {
    let page = try told(result)
    for sequence in page.damaged where damaged.insert(sequence).inserted {
      logger.error(
        "a record in the spool is damaged, and stays there",
        ["spool.directory": .string(directory), "spool.sequence": .integer(sequence)])
    }
    return page.records
  }

  /// What is known of each record that it holds, oldest first. Reads all of it: for the start.
  package func heldRecords() async throws(SpoolError) -> [HeldRecord] {
    guard isOpen else { return held }
    return try told(await keeper.run { file throws(SpoolError) in try file.heldRecords() })
  }

  /// Finishes what was begun, and lets go of the directory. Removals that the disk refuses are given up.
  package func close() async {
    guard !isClosed else { return }
    isClosed = true
    for deadline in [pause, probe, survey] { deadline.invalidate() }
    await working?.value
    startWorking(afterPause: true)
    await working?.value
    await keeper.close()
  }

  // MARK: Beneath

  /// How long the oldest record has been here.
  var ageOfOldest: Duration { content.oldest.map { max(now() - $0, .zero) } ?? .zero }

  /// What a read came to. Says when reading begins to fail, and when it works again.
  private func told<Value>(_ result: Result<Value, SpoolError>) throws(SpoolError) -> Value {
    let wasUnreadable = isUnreadable
    switch result {
    case .success:
      isUnreadable = false
      if wasUnreadable { logger.notice("the spool can be read again", ["spool.directory": .string(directory)]) }
    case .failure(let failure):
      isUnreadable = true
      metrics.failures[.read].increment()
      if !wasUnreadable {
        logger.error(
          "the spool cannot be read", ["spool.directory": .string(directory), "cause": .describing(failure)])
      }
    }
    return try result.get()
  }

  /// Asks a disk that took no record whether it would take one, or open the file, by now.
  private func probeDisk() async {
    guard !isClosed, refusal != nil else { return }
    guard isOpen else { return await reopen() }
    let before = answers
    let answer = await keeper.run { file throws(SpoolError) in try file.probe() }
    // A record that was taken or refused meanwhile may be the newer answer.
    guard answers == before else { return }
    switch answer {
    case .success:
      note(refusal: nil)
      if stuck.isEmpty { note(nil) }
    case .failure(let failure): note(refusal: failure)
    }
  }

  /// Tries to open the file that could not be opened at the start.
  private func reopen() async {
    let opening = await keeper.reopen(at: now())
    if opening.setAside != nil {
      saySetAside(opening)
      content = opening.content
      whenSetAside?()
      held = []
      await countSetAside()
    }
    if let failure = opening.refusal {
      if failure.code != refusal?.code, !isClosed {
        logger.error(
          "the spool's file cannot be opened: the spool takes nothing and publishes nothing",
          ["spool.directory": .string(directory), "cause": .describing(failure)])
      }
      return note(refusal: failure)
    }
    content = opening.content
    (isOpen, held, lastSequence) = (true, [], max(lastSequence, content.lastSequence))
    note(refusal: nil)
    logger.notice(
      "the disk has room again: the spool is open",
      ["spool.directory": .string(directory), "spool.records": .integer(content.records)])
    startWorking(afterPause: true)
  }

  /// Takes that somebody has waited for the disk for too long: until it answers, it counts as one that takes nothing.
  func hang() {
    guard isOpen, !isHanging else { return }
    metrics.failures[.write].increment()
    logger.error(
      "the spool's disk does not answer: the spool takes nothing until it does",
      ["spool.directory": .string(directory), "spool.records": .integer(content.records)])
    note(refusal: SpoolError(.hanging, directory, "its disk does not answer"))
  }

  /// Notes whether the disk takes records, and looks again while it does not.
  private func note(refusal: SpoolError?) {
    if isHanging, refusal?.code != .hanging {
      logger.notice("the spool's disk answers again", ["spool.directory": .string(directory)])
    }
    self.refusal = refusal
    answers += 1
    if refusal != nil, !isClosed { probe.set(.now + probing) }
  }

  /// Looks how many damaged files there are, again and again while there are any.
  private func countSetAside() async {
    do throws(SpoolError) { setAside = try await keeper.countSetAside() } catch {
      logger.warning("the spool's directory cannot be read", ["cause": .describing(error)])
    }
    if setAside > 0, !isClosed { survey.set(.now + .seconds(60)) }
  }

  private func startWorking(afterPause: Bool = false) {
    guard isOpen, working == nil, !waiting.isEmpty || afterPause && shallShrink else { return }
    working = Task(executorPreference: Loop.executor) { await self.work(afterPause) }
  }

  /// Commits group after group until nothing waits, or until what waits can only be tried again later.
  private func work(_ isAfterPause: Bool) async {
    var (goesOn, mayShrink) = (true, isAfterPause)
    while goesOn, !waiting.isEmpty || mayShrink && shallShrink {
      if waiting.isEmpty {
        await shrink()
        mayShrink = false
      } else {
        goesOn = await commitWaiting()
      }
    }
    working = nil
    if !isClosed, !waiting.isEmpty || shallShrink { pause.set(.now + Self.patience) }
  }

  /// Commits the first of what waits. False where the disk has refused removals, and nothing else waits.
  private func commitWaiting() async -> Bool {
    let group = waiting.takeSome(removals: removalsAtATime)
    var failure = await commit(group.changes)
    var refusal = failure
    if failure != nil, !group.inserts.isEmpty, !group.removals.isEmpty {
      note(refusal: failure)
      // Neither fails because of the other; and a disk without room for records may have some for removals, which make
      // room.
      refusal = await commit(SpoolFile.Changes(inserts: [], removals: group.changes.removals))
      failure = await commit(SpoolFile.Changes(inserts: group.changes.inserts, removals: []))
    }
    if !group.inserts.isEmpty { note(refusal: failure) }
    for insert in group.inserts {
      pledged -= insert.record.size
      insert.waiter(failure.map { .failure($0) } ?? .success(insert.record.sequence))
    }
    if refusal != nil, !isClosed, !group.removals.isEmpty { return postpone(group.removals) }
    removalsAtATime = min(removalsAtATime * 2, SpoolGroup.most)
    for removal in group.removals { removal.waiter() }
    return true
  }

  /// Lets removals that the disk has refused wait behind the others. One by one they show which of them it is that cannot
  /// be done. False where nothing else is to be tried now.
  private func postpone(_ removals: [SpoolGroup.Removal]) -> Bool {
    waiting.removals += removals
    removalsAtATime = 1
    stuck.formUnion(removals.map(\.sequence))
    return removals.count > 1 || !waiting.inserts.isEmpty
  }

  /// Makes the changes durable, or says why not.
  private func commit(_ changes: SpoolFile.Changes) async -> SpoolError? {
    switch await keeper.run({ file throws(SpoolError) in try file.commit(changes) }) {
    case .success(let after):
      metrics.commits.increment()
      metrics.inserts.increment(by: UInt64(changes.inserts.count))
      metrics.removals.increment(by: UInt64(content.records + changes.inserts.count - after.records))
      (content, hasRemains) = (after, true)
      stuck.subtract(changes.removals)
      // Where records find no room, a removal that does shows nothing.
      if stuck.isEmpty, refusal == nil || !changes.inserts.isEmpty { note(nil) }
      return nil
    case .failure(let failure):
      metrics.failures[failure.code == .full ? .full : .write].increment()
      note(failure)
      return failure
    }
  }

  /// Whether there are rows of what is gone, or nothing is held and traces of what was are.
  private var shallShrink: Bool { content.gone > 0 || hasRemains && content.records == 0 }

  /// Gives space and traces back, unless a reader is in the way now.
  private func shrink() async {
    switch await keeper.run({ file throws(SpoolError) in try file.shrink() }) {
    case .success(let (after, isDone)): (content, hasRemains) = (after, !isDone)
    case .failure(let failure):
      metrics.failures[.write].increment()
      note(failure)
    }
  }

  /// Says when writing begins to fail, and when it works again.
  private func note(_ failure: SpoolError?) {
    let wasFailing = isFailing
    isFailing = failure != nil
    if let failure, !wasFailing {
      logger.warning(
        "the spool cannot be written", ["spool.directory": .string(directory), "cause": .describing(failure)])
    } else if wasFailing, failure == nil {
      logger.notice("the spool can be written again", ["spool.directory": .string(directory)])
    }
  }
}
