import AccountEvents
import EventLoop
import Telemetry

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
    isDrainWoken = true
    drainer?.resume()
    drainer = nil
  }

  /// Returns at that moment, or once it was woken since this returned last.
  func wait(until due: MonotonicTime) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // A task that does not prefer the loop's executor has given way since it looked.
        if isDrainWoken || isClosing || Task.isCancelled { return continuation.resume() }
        drainer = continuation
        drainAlarm.set(due)
      }
    } onCancel: {
      Task { @Loop in wakeDrain() }
    }
    isDrainWoken = false
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
    log.append(aloneIfRefused: record.record) { [self] report in
      switch report {
      case .success:
        note(report)
        perform(lanes.step(lane) { $0.acknowledged(nil) }, in: lane)
      case .failure(let error):
        // It is not noted: one record that the log never takes must not send all new ones to the spool.
        if error.outcome == .refused, let letter = EventRecord(letterOf: record.record), !isClosing {
          setAside(record, as: letter, lane, error)
        } else {
          fail(nil, of: lane, record.sequence, error)
        }
      }
    }
  }

  /// Brings to quarantine what its own topic never takes, where a person decides and its account's later events do not wait
  /// for that. What quarantine does not take either stays.
  private func setAside(_ record: SpooledRecord, as letter: EventRecord, _ lane: LaneID, _ refusal: EventLogError) {
    log.append(aloneIfRefused: letter) { [self] report in
      guard case .success = report else { return fail(nil, of: lane, record.sequence, refusal) }
      note(report)
      metrics.quarantined[.refused].increment()
      let (sequence, event) = (record.sequence, record.record.headers.text(of: "ce_id"))
      logger.error(
        "the log refuses a record, which is in quarantine now",
        [
          "spool.sequence": .integer(sequence), "event.id": .string(event),
          "reason": .string(refusal.reason), "detail": .string(refusal.detail),
        ])
      perform(lanes.step(lane) { $0.acknowledged(nil) }, in: lane)
    }
  }
}

extension EventRecord {
  /// The quarantine's record of an account event that its own topic refuses; nil where this is none that Apple signed.
  init?(letterOf record: EventRecord) {
    guard record.topic == .accountEvents,
      let jws = record.headers.last(where: { $0.name == Self.signatureHeader })?.value
    else { return nil }
    do throws(EventDecodingError) {
      self.init(QuarantinedEvent(refused: try AccountEvent(decoding: record.value)), jws: jws)
    } catch {
      // Nothing but what the ingress has encoded comes here. What is not stays in the spool, and is listed there.
      return nil
    }
  }
}
