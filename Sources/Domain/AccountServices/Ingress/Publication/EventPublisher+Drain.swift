import AccountEvents
import EventLoop

extension EventPublisher {
  /// How many records are read at once.
  private static let batch = 256
  /// How long a spool is left alone that is not open.
  private static let pause = Duration.seconds(2)

  /// Brings what the spool holds to the log, until the task is cancelled.
  ///
  /// Each account goes at its own pace: its next record follows once the one before it is durably gone, and where the log
  /// does not take it, the account is left alone for a while.
  package func drain() async {
    drainAlarm.onPass { [weak self] in self?.wakeDrain() }
    while !Task.isCancelled, !isClosing {
      let turns = lanes.takeTurns(at: Loop.now, limit: Self.batch)
      if turns.isEmpty {
        await wait(until: lanes.due ?? .distantFuture)
      } else {
        await bring(turns)
      }
    }
  }

  /// Wakes the drain: somebody's turn may have come.
  func wakeDrain() {
    drainer?.resume()
    drainer = nil
  }

  private func wait(until due: MonotonicTime) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if isClosing || Task.isCancelled { return continuation.resume() }
        drainer = continuation
        drainAlarm.set(due)
      }
    } onCancel: {
      Task { @Loop in wakeDrain() }
    }
  }

  private func bring(_ turns: [AccountLanes<Submission>.Turn]) async {
    let records: [SpooledRecord]
    do throws(SpoolError) {
      records = try await spool.read(turns.map(\.sequence))
    } catch {
      return await failToRead(turns)
    }
    var rest = records[...]
    for turn in turns where !isClosing {
      // What cannot be read keeps nobody waiting: not even its own account, for which it would be for ever.
      if let record = rest.first, record.sequence == turn.sequence {
        rest.removeFirst()
        bring(record, turn.lane)
      } else {
        lanes.skip(turn)
      }
    }
  }

  /// Tries one by one what cannot be read together: who has something on a page that cannot be read backs off, and keeps
  /// nobody else waiting. The spool has said so, once.
  private func failToRead(_ turns: [AccountLanes<Submission>.Turn]) async {
    guard spool.isOpen else {
      for turn in turns { lanes.putBack(turn) }
      let end = Loop.now + Self.pause
      while Loop.now < end, !Task.isCancelled, !isClosing { await wait(until: end) }
      return
    }
    if turns.count > 1 {
      for turn in turns { await bring([turn]) }
    } else if let turn = turns.first {
      perform(lanes.failed(nil, in: turn.lane, isRefused: false, at: Loop.now), in: turn.lane)
    }
  }

  private func bring(_ record: SpooledRecord, _ lane: LaneID) {
    log.append(record.record) { [self] report in
      switch report {
      case .success:
        note(report)
        perform(lanes.step(lane) { $0.acknowledged(nil) }, in: lane)
      case .failure(let error):
        // It is not noted: one record that the log never takes must not send all new ones to the spool.
        fail(nil, of: lane, record.sequence, error)
      }
    }
  }
}
