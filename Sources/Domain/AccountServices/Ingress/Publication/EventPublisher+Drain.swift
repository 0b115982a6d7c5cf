import AccountEvents
import EventLoop
import Telemetry

extension EventPublisher {
  /// How many records are read at once.
  private static let page = 256
  /// How long what nobody took is left alone.
  private static let pause = Duration.milliseconds(250)

  /// Brings what the spool holds to the log, until the task is cancelled.
  package func drain() async {
    while !Task.isCancelled, !isClosing {
      await somethingToDrain()
      let delivered = await pass()
      if delivered > 0 { continue }
      do { try await Loop.sleep(for: Self.pause) } catch { return }
    }
  }

  /// Wakes the drain: something is held, or has become free.
  func wakeDrain() {
    drainer?.resume()
    drainer = nil
  }

  private func somethingToDrain() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if spool.depth > spool.damaged.count || isClosing || Task.isCancelled { return continuation.resume() }
        drainer = continuation
      }
    } onCancel: {
      Task { @Loop in wakeDrain() }
    }
  }

  /// Goes once through all that the spool holds now, oldest first. Returns how many records the log took.
  ///
  /// The records of one account follow one another within the pass. One that has to stay (its account is busy, or the log
  /// did not take it) keeps all later ones of its account back until the next pass, so that none overtakes it.
  private func pass() async -> Int {
    let pass = DrainPass(window)
    await withDiscardingTaskGroup { group in
      var place: Int64 = 0
      let last = spool.lastSequence
      while place < last, !isClosing, !Task.isCancelled {
        let records: [SpooledRecord]
        do throws(SpoolError) {
          records = try await spool.read(after: place, limit: Self.page)
        } catch {
          return  // the spool says so, once
        }
        // What cannot be read keeps nobody waiting: not even its own account, for which it would be for ever.
        for damaged in spool.takeFindings() { lanes.hold(-1, of: AccountLanes.name(of: damaged.account)) }
        if records.isEmpty { return }
        for record in records {
          place = record.sequence
          let lane = AccountLanes.name(of: record.record)
          await window.enter()
          if !isClosing, pass.follow(record, in: lane) { continue }
          guard !isClosing, pass.mayTry(lane, hasFailed: failing.contains(lane)), lanes.begin(lane) else {
            pass.block(lane)
            window.leave()
            continue
          }
          pass.begin(lane)
          group.addTask(executorPreference: Loop.executor) { [self] in await bring(record, lane, pass) }
        }
      }
    }
    return pass.delivered
  }

  /// Brings a record to the log, and then those of its account that the pass has found meanwhile. Each leaves the spool
  /// for good before the next may follow.
  private func bring(_ first: SpooledRecord, _ lane: AccountLanes.Name, _ pass: DrainPass) async {
    var next: SpooledRecord? = first
    while let record = next {
      if await hasLog(record) {
        pass.delivered += 1
        await spool.remove(record.sequence)
        window.widen()
        deliveredLate.remove(record.sequence)
        if refused.remove(record.sequence) != nil { metrics.refused.set(Double(refused.count)) }
        lanes.hold(-1, of: lane)
        failing.remove(lane)
        metrics.drained.increment()
      } else {
        pass.stop(lane)
        failing.insert(lane)
        window.narrow()
      }
      window.leave()
      next = pass.next(in: lane)
    }
    lanes.end(lane)
  }

  /// Whether the log has the record: since its way there took too long, or by now.
  private func hasLog(_ record: SpooledRecord) async -> Bool {
    if deliveredLate.contains(record.sequence) { return true }
    // Whoever closes the log may have come between this record and the one before it.
    if isClosing { return false }
    let report = await withCheckedContinuation { continuation in
      log.append(record.record) { continuation.resume(returning: $0) }
    }
    // A failure is not noted: one record that the log never takes must not send all new ones to the spool.
    guard case .failure(let error) = report else {
      note(report)
      return true
    }
    if error.outcome == .refused, refused.insert(record.sequence).inserted {
      metrics.refused.set(Double(refused.count))
      logger.error(
        "the log refuses a record, which stays in the spool",
        ["spool.sequence": .integer(record.sequence), "reason": .string(error.reason), "detail": .string(error.detail)])
    }
    return false
  }
}

/// One way through the spool.
@Loop
private final class DrainPass {
  /// Which part of the window those may take that failed the last time: they occupy it for as long as the log tries.
  private static let shareOfFailing = 4

  /// How many records the log took.
  var delivered = 0
  private let window: DrainWindow
  private var blocked: Set<AccountLanes.Name> = []
  private var retried: Set<AccountLanes.Name> = []
  /// What follows in each lane that something is brought of, the next one last.
  private var following: [AccountLanes.Name: [SpooledRecord]] = [:]

  /// How many records may follow in one lane: an account with many must not take the places of all others.
  private static let longest = 16

  init(_ window: DrainWindow) { self.window = window }

  /// Whether a record of the account may be tried: none of its records was left behind, and it does not keep others
  /// waiting that have not failed.
  func mayTry(_ lane: AccountLanes.Name, hasFailed: Bool) -> Bool {
    if blocked.contains(lane) || (hasFailed && retried.count >= window.width / Self.shareOfFailing) { return false }
    if hasFailed { retried.insert(lane) }
    return true
  }

  /// Leaves a record of the account behind, and all that come after it. What follows already may go on.
  func block(_ lane: AccountLanes.Name) { blocked.insert(lane) }

  /// Leaves behind what follows, too.
  func stop(_ lane: AccountLanes.Name) {
    block(lane)
    for _ in following[lane] ?? [] { window.leave() }
    following[lane] = []
  }

  /// A record of the account is on its way from now on, until `next` has nothing more.
  func begin(_ lane: AccountLanes.Name) { following[lane] = [] }

  /// Has the record, which has entered, follow what is on its way of its account. False if nothing is, or too much
  /// follows, or the account failed the last time: what follows then would wait for nothing in the place of others.
  func follow(_ record: SpooledRecord, in lane: AccountLanes.Name) -> Bool {
    guard !blocked.contains(lane), !retried.contains(lane), let queue = following[lane], queue.count < Self.longest
    else { return false }
    following[lane]?.insert(record, at: 0)
    return true
  }

  /// What follows in the lane; nil where nothing of the account is on its way any longer.
  func next(in lane: AccountLanes.Name) -> SpooledRecord? {
    if let next = following[lane]?.popLast() { return next }
    following[lane] = nil
    retried.remove(lane)
    return nil
  }
}
