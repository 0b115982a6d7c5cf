/// Where a record is on its way from Kafka to its effect: every state that there is, and in `step` every way from one to
/// the next.
package enum RecordState: Hashable, Sendable {
  /// It waits for those of its account before it, or for its partition to be claimed.
  case queued
  /// The store is asked how its event stands.
  case asking
  /// It waits for a worker.
  case ready
  /// The consumer is at work on it, or its failure is being counted.
  case processing
  /// The store writes what was decided.
  case settling
  /// The log is to take what follows from it.
  case announcing
  /// The log is to take it as a dead letter.
  case burying
  /// It waits for its next attempt; the last one has failed for that cause.
  case backingOff(cause: String)
  /// Nothing of it is left to do after a restart.
  case done
  /// It was left here: whoever has its partition next does what there is to do.
  case dropped

  /// Whether something may have happened for it that is not finished: it is not dropped before that comes to an end.
  package var isHolding: Bool {
    switch self {
    case .processing, .settling, .announcing, .burying: true
    case .queued, .asking, .ready, .backingOff, .done, .dropped: false
    }
  }

  /// What has happened to it.
  package enum Step: Hashable, Sendable {
    /// It is its turn: the store is asked first, as its consumer works outside of it, or its key has to prove the event.
    case begun
    /// It is its turn: its consumer needs nothing but the event.
    case begunAtOnce
    /// It is its turn: its consumer has nothing to do with it, or the store has all there is to do.
    case needless
    /// It is its turn: nobody can read it.
    case unreadable
    /// There is something to do, or to look at, says the store.
    case open
    /// Something else has made it void, says the store, and that is to be noted.
    case void
    /// It was settled: now, or before. What follows from it is to be announced, or nothing is.
    case settled(isToBeAnnounced: Bool)
    /// A worker has it.
    case taken
    /// The consumer has decided.
    case decided
    /// An attempt has failed, and the next may succeed.
    case failed(cause: String)
    /// It is to be put aside, for a person to look at.
    case hopeless
    /// It was to be noted as void, and is not any more.
    case reopened
    /// The log has all of it.
    case acknowledged
    /// Its partition goes, or began anew.
    case given
    /// Its partition has gone, and what is left to do is not ours any more.
    case orphaned
  }

  /// What is to be done about it next.
  package enum Action: Hashable, Sendable {
    case ask, enlist, process, settle, announce, bury, backOff, beginAgain
    /// It is finished, and the next one of its account begins.
    case finish
    /// The next one of its account begins.
    case leave
  }

  /// Takes a step, and says what is to be done. One that is not in the table is a mistake of ours.
  package mutating func step(_ step: Step) -> Action {
    guard let (next, action) = following(step) else {
      preconditionFailure("a record that is \(self) cannot be \(step)")
    }
    self = next
    return action
  }

  /// The table of all steps: where one leads from here, and what is to be done there. Nil where it cannot happen.
  package func following(_ step: Step) -> (next: RecordState, action: Action)? {
    switch (self, step) {
    case (.queued, .begun), (.backingOff, .begun): (.asking, .ask)
    case (.queued, .begunAtOnce), (.backingOff, .begunAtOnce): (.processing, .process)
    case (.queued, .needless): (.done, .finish)
    case (.queued, .unreadable): (.burying, .bury)

    case (.asking, .open): (.ready, .enlist)
    case (.ready, .taken): (.processing, .process)

    case (.asking, .void), (.processing, .void), (.processing, .decided): (.settling, .settle)
    case (.processing, .failed(let cause)), (.settling, .failed(let cause)): (.backingOff(cause: cause), .backOff)

    case (.asking, .settled(true)), (.settling, .settled(true)): (.announcing, .announce)
    case (.asking, .settled(false)), (.settling, .settled(false)): (.done, .finish)
    case (.settling, .reopened): (.queued, .beginAgain)
    case (.announcing, .acknowledged), (.burying, .acknowledged): (.done, .finish)

    // Whatever waits is put aside where Kafka may have it no more, as what never succeeds is.
    case (.processing, .hopeless), (.settling, .hopeless): (.burying, .bury)
    case (.queued, .hopeless), (.asking, .hopeless), (.ready, .hopeless), (.backingOff, .hopeless): (.burying, .bury)

    // Its partition goes. What only waits is left to the next process; what is held comes to its end first.
    case (.queued, .given), (.asking, .given), (.ready, .given), (.backingOff, .given): (.dropped, .leave)
    case (.settling, .orphaned), (.announcing, .orphaned), (.burying, .orphaned): (.dropped, .leave)

    default: nil
    }
  }
}
