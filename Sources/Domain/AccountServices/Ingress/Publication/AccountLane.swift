import AccountEvents
import EventLoop

/// All that is under way of one account, as a value: its steps say what is to be done, and `EventPublisher` does it.
///
/// A lane has two ends, each with a state of its own, because a new record may be on its way into the spool while an older
/// one is on its way out. **At Apple's end** is the record that was let in last; whoever comes behind it waits.
///
/// | the record is (`Arrival.State`) | log has it | log fails | patience over | deadline over | spool has it | spool refuses |
/// |---|---|---|---|---|---|---|
/// | `publishing`: on its way to the log | published, out | store, `failed` | store, `late` | lost | | |
/// | `late`: the same, and into the spool | published, `acknowledged` | `failed` | | lost | spooled, out; head `inFlight` | `unspooled` |
/// | `acknowledged`: on the log, on its way into the spool | | | | | out; remove, head `leaving` | out |
/// | `failed`: not on the log, on its way into the spool | | | | lost | spooled, out; head `backingOff` | lost, out |
/// | `spooling`: on its way into the spool | | | | lost | spooled, out; head `ready` | lost, out; append, `unspooled` [^] |
/// | `unspooled`: on its way to the log, not in the spool | published, out | lost, out | | lost, out | | |
///
/// [^] The latter where none is held that it would overtake, or where it has no order.
///
/// Whoever is told at the deadline that it is lost is told nothing after that (`Arrival.isGivenUp`). The place stays taken
/// until the spool has said what became of the record, or the log where the spool was not asked: it may be there all the
/// same, and the next one must not overtake it. What is given up goes on no new way: where the spool refuses it, it is out.
/// Whoever still waits for the place at the deadline leaves, and is lost.
///
/// **At the log's end** is the oldest record that the spool holds.
///
/// | the record (`Head`) | its turn | log has it | log fails | backoff over | gone, or not to be read |
/// |---|---|---|---|---|---|
/// | `empty`: there is none | | | | | |
/// | `ready`: waits for its turn | append, `inFlight` | | | | |
/// | `inFlight`: is on its way to the log | | remove, `leaving` | `backingOff` | | the next is `ready` |
/// | `leaving`: is on the log, and leaves the spool | | | | | the next is `ready` |
/// | `backingOff`: waits, because the log did not take it | | | | `ready` | |
///
/// `Newcomer` is whatever stands for a record that is not answered for.
struct AccountLane<Newcomer: Equatable> {
  /// What is to be done.
  enum Action: Equatable {
    /// Give the record to the log.
    case append(Newcomer)
    /// Give the record to the spool.
    case store(Newcomer)
    /// Tell whoever waits what became of the record.
    case answer(Newcomer, Answer)
    /// Take the record out of the spool.
    case remove(Int64)
  }

  /// What became of a record.
  enum Answer: Equatable {
    case published, spooled, lost
  }

  /// What becomes of a new record.
  struct Arrival: Equatable {
    enum State: Equatable {
      case publishing, late, acknowledged, failed, spooling, unspooled
    }

    let newcomer: Newcomer
    var state: State
    /// Whether whoever waits was told that it is lost, because neither log nor spool has said anything in time.
    var isGivenUp = false
  }

  /// What becomes of the oldest record in the spool.
  enum Head: Equatable {
    case empty
    case ready
    case backingOff(until: MonotonicTime)
    /// On its way since it came; nil where the drain has brought it.
    case inFlight(Newcomer?)
    case leaving(Newcomer?)
  }

  /// Behind so many failures the next try is as late as any: what is refused for good begins there.
  private static var refused: Int { 16 }

  /// The record that was let in last, until its place is free.
  private(set) var arrival: Arrival?
  /// Those that wait for its place, in their order.
  private var waiting = FIFO<Newcomer>()
  /// What the spool holds, oldest first, by its numbers.
  private var held = FIFO<Int64>()
  private(set) var head = Head.empty
  /// How often in a row the log did not take a record of the lane.
  private(set) var failures = 0

  /// Whether nothing is under way.
  var isOver: Bool { arrival == nil && waiting.isEmpty && held.isEmpty }

  // MARK: Apple's end

  /// Lets a new record in, or has it wait: then nothing is to be done.
  mutating func arrive(_ newcomer: Newcomer, logIsTrusted: Bool) -> Action? {
    guard arrival == nil else {
      waiting.append(newcomer)
      return nil
    }
    let goesToTheLog = logIsTrusted && held.isEmpty
    arrival = Arrival(newcomer: newcomer, state: goesToTheLog ? .publishing : .spooling)
    return goesToTheLog ? .append(newcomer) : .store(newcomer)
  }

  /// Who is to arrive next, once the place is free.
  mutating func next() -> Newcomer? { arrival == nil ? waiting.popFirst() : nil }

  /// The log has had its time.
  mutating func runOutOfPatience(with newcomer: Newcomer) -> Action? {
    guard arrival == Arrival(newcomer: newcomer, state: .publishing) else { return nil }
    arrival?.state = .late
    return .store(newcomer)
  }

  /// Whoever waits for the record has waited long enough.
  mutating func runOutOfTime(for newcomer: Newcomer) -> Action? {
    guard let arrival, arrival.newcomer == newcomer else {
      let count = waiting.count
      waiting.removeAll { $0 == newcomer }
      return waiting.count < count ? .answer(newcomer, .lost) : nil
    }
    if arrival.state == .acknowledged || arrival.isGivenUp { return nil }
    if arrival.state == .unspooled { return leave(.lost) }
    self.arrival?.isGivenUp = true
    return .answer(newcomer, .lost)
  }

  /// The spool has a new record.
  mutating func stored(_ newcomer: Newcomer, as sequence: Int64, retryAt due: (_ failures: Int) -> MonotonicTime)
    -> Action?
  {
    guard let arrival, arrival.newcomer == newcomer else { return nil }
    held.append(sequence)
    switch arrival.state {
    case .late: head = .inFlight(newcomer)
    case .failed: head = .backingOff(until: due(failures))
    case .acknowledged:
      (self.arrival, head) = (nil, .leaving(newcomer))
      return .remove(sequence)
    case .publishing, .spooling, .unspooled: if head == .empty { head = .ready }
    }
    return leave(.spooled)
  }

  /// The spool does not take a new record. `isLate` says that whoever waits has waited long enough, `isOrdered` that it
  /// must not overtake what is held.
  mutating func notStored(_ newcomer: Newcomer, isLate: Bool, isOrdered: Bool) -> Action? {
    guard let arrival, arrival.newcomer == newcomer else { return nil }
    switch arrival.state {
    case .acknowledged:
      self.arrival = nil
      return nil
    case .late where !isLate && !arrival.isGivenUp:
      self.arrival?.state = .unspooled
      return nil
    case .spooling where !arrival.isGivenUp && (held.isEmpty || !isOrdered):
      self.arrival?.state = .unspooled
      return .append(newcomer)
    case .publishing, .late, .failed, .spooling, .unspooled: return leave(.lost)
    }
  }

  private mutating func leave(_ answer: Answer) -> Action? {
    defer { arrival = nil }
    return arrival.flatMap { $0.isGivenUp ? nil : .answer($0.newcomer, answer) }
  }

  // MARK: Both ends

  /// The log has a new record, or with nil what the drain brought.
  mutating func acknowledged(_ newcomer: Newcomer?) -> Action? {
    if let newcomer, let arrival, arrival.newcomer == newcomer {
      failures = 0
      guard arrival.state == .late else { return leave(.published) }
      self.arrival?.state = .acknowledged
      return arrival.isGivenUp ? nil : .answer(newcomer, .published)
    }
    guard head == .inFlight(newcomer) else { return nil }  // it was answered for as lost
    head = .leaving(newcomer)
    return held.first.map { .remove($0) }
  }

  /// The log did not take a new record, or with nil what the drain brought.
  mutating func failed(_ newcomer: Newcomer?, isRefused: Bool, retryAt due: (_ failures: Int) -> MonotonicTime)
    -> Action?
  {
    if let newcomer, let arrival, arrival.newcomer == newcomer {
      if arrival.state == .unspooled || arrival.state == .publishing && arrival.isGivenUp { return leave(.lost) }
      self.arrival?.state = .failed
      countFailure(isRefused)
      return arrival.state == .publishing ? .store(newcomer) : nil
    }
    guard head == .inFlight(newcomer) else { return nil }  // it was answered for as lost
    countFailure(isRefused)
    head = .backingOff(until: due(failures))
    return nil
  }

  private mutating func countFailure(_ isRefused: Bool) {
    failures = isRefused ? max(failures, Self.refused) + 1 : failures + 1
  }

  // MARK: The log's end

  /// Adds what the last run left in the spool.
  mutating func restore(_ sequence: Int64) {
    held.append(sequence)
    head = .ready
  }

  /// It is the oldest one's turn, whose number this is; nil where it is not ready.
  mutating func begin() -> Int64? {
    guard head == .ready, let first = held.first else { return nil }
    head = .inFlight(nil)
    return first
  }

  /// Gives back a turn of which nothing came.
  mutating func putBack() { head = .ready }

  /// The oldest one is gone, or cannot be read and stays for ever.
  mutating func removeFirst() {
    _ = held.popFirst()
    failures = 0
    head = held.isEmpty ? .empty : .ready
  }

  /// Tries again what backed off until then, if it still does.
  mutating func tryAgain(after time: MonotonicTime) {
    if head == .backingOff(until: time) { head = .ready }
  }

  /// The spool holds nothing any more.
  mutating func forgetHeld() { (held, head, failures) = (FIFO(), .empty, 0) }
}

extension AccountLane.Head: Sendable where Newcomer: Sendable {}
